package results

import (
	"encoding/binary"
	"hash/crc32"
)

// mark is a place between two records: the position in the file and the offset in the stream.
type mark struct {
	pos int64
	off uint64
}

// Sum is the size and CRC-32C (Castagnoli) of everything the command wrote on one stream, kept or not.
type Sum struct {
	Bytes  uint64
	CRC32C uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *Sum) add(p []byte) {
	s.Bytes += uint64(len(p))
	s.CRC32C = crc32.Update(s.CRC32C, castagnoli, p)
}

// Mark is the caller's place in init's numbered frames, stored by Commit.
type Mark struct {
	Seq   uint64
	Stage uint8
}

// state is what the page of a file says, and the part of a view that survives the daemon.
type state struct {
	lay     layout
	end     mark
	sums    [2]Sum // stdout, stderr; their bytes add up to end.off
	headEnd int64  // where the head's records end; lay.head until the ring is entered
	headOff uint64 // offset at which the ring was entered
	oldest  mark   // first whole record in the ring; its position is lay.head until the ring turns
	ended   bool
	endTime int64
	sha     [32]byte // of the kept bytes, when ended

	committed bool
	mark      Mark
	marked    [2]uint64 // bytes of the streams at the mark
}

func newState(lay layout) state {
	return state{lay: lay, headEnd: lay.head, oldest: mark{pos: lay.head}}
}

// turned says whether the ring overwrote something, so that only the page knows where records begin and end.
func (s *state) turned() bool { return s.oldest.pos > s.lay.head }

// kept is how many bytes of the stream are in the file.
func (s *state) kept() uint64 {
	if !s.turned() {
		return s.end.off
	}
	return s.headOff + s.end.off - s.oldest.off
}

// sound bounds what a page may claim, so that nothing later has to doubt it.
func (s *state) sound() bool {
	const far = 1 << 62
	return s.lay.sound() &&
		s.end.pos >= 0 && s.end.pos < far && s.end.off <= uint64(s.end.pos) &&
		s.sums[0].Bytes <= s.end.off && s.sums[1].Bytes == s.end.off-s.sums[0].Bytes &&
		s.headEnd >= 0 && s.headEnd <= s.lay.head && s.headOff <= s.end.off &&
		s.oldest.pos >= s.lay.head && s.oldest.off <= s.end.off &&
		(!s.turned() || s.oldest.pos <= s.end.pos && s.oldest.off >= s.headOff &&
			s.end.pos-s.oldest.pos <= s.lay.ring && s.end.off-s.oldest.off <= uint64(s.lay.ring)) &&
		(s.turned() || s.end.pos <= s.lay.last()) &&
		(s.end.pos > s.lay.head || s.headEnd == s.lay.head)
}

const (
	slotSize  = 512
	slotMagic = "sbxstrm1"
)

const (
	flagEnded = 1 << iota
	flagCommitted
)

// encode fills one slot of the page. The order is that of fields below; decode reads it back.
func (s *state) encode(b *[slotSize]byte, gen uint64) {
	clear(b[:])
	copy(b[:], slotMagic)
	flags := uint64(0)
	if s.ended {
		flags |= flagEnded
	}
	if s.committed {
		flags |= flagCommitted
	}
	p := 8
	for _, v := range []uint64{gen, flags, uint64(s.lay.head), uint64(s.lay.ring), uint64(s.end.pos), s.end.off,
		s.sums[0].Bytes, uint64(s.sums[0].CRC32C), s.sums[1].Bytes, uint64(s.sums[1].CRC32C),
		uint64(s.headEnd), s.headOff, uint64(s.oldest.pos), s.oldest.off, uint64(s.endTime),
		s.mark.Seq, uint64(s.mark.Stage), s.marked[0], s.marked[1]} {
		binary.BigEndian.PutUint64(b[p:], v)
		p += 8
	}
	copy(b[p:], s.sha[:])
	binary.BigEndian.PutUint32(b[slotSize-4:], crc32.Checksum(b[:slotSize-4], castagnoli))
}

func decodeSlot(b []byte) (s state, gen uint64, ok bool) {
	if string(b[:8]) != slotMagic || binary.BigEndian.Uint32(b[slotSize-4:]) != crc32.Checksum(b[:slotSize-4], castagnoli) {
		return s, 0, false
	}
	p := 8
	next := func() uint64 {
		p += 8
		return binary.BigEndian.Uint64(b[p-8:])
	}
	gen = next()
	flags := next()
	s.ended, s.committed = flags&flagEnded != 0, flags&flagCommitted != 0
	s.lay = layout{head: int64(next()), ring: int64(next())}
	s.end = mark{int64(next()), next()}
	for i := range s.sums {
		s.sums[i] = Sum{next(), uint32(next())}
	}
	s.headEnd, s.headOff = int64(next()), next()
	s.oldest = mark{int64(next()), next()}
	s.endTime = int64(next())
	s.mark = Mark{next(), uint8(next())}
	s.marked = [2]uint64{next(), next()}
	copy(s.sha[:], b[p:])
	return s, gen, s.sound()
}

// decodePage returns the newer of the page's slots that are sound.
func decodePage(page []byte) (s state, gen uint64, ok bool) {
	for i := range 2 {
		t, g, sound := decodeSlot(page[i*slotSize:][:slotSize])
		if sound && (!ok || g > gen) {
			s, gen, ok = t, g, true
		}
	}
	return s, gen, ok
}
