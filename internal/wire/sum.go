package wire

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add counts p as the next bytes of the stream.
func (s *StreamSum) Add(p []byte) {
	s.Bytes += uint64(len(p))
	s.CRC32C = crc32.Update(s.CRC32C, castagnoli, p)
}
