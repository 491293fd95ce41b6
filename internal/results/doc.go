// Package results keeps what jobs write. It is the only room that parses bytes a job wrote, and believes none of them.
//
// # The stream of a job
//
// One file a job holds its stdout and stderr, byte for byte, as records in the order init read them:
//
//	page (4 KiB)          two slots, written in turn: where the records end, counts, checksums, how it ended
//	head                  records, never overwritten
//	ring (1 MiB and some) records; after its end the next one overwrites the oldest
//
// A record is a header of 24 bytes (offset u64, time i64, length u32, kind u8, three zeros, big endian; package api has
// the same) and its payload. The offset counts the bytes of both streams. File and memory are bounded: head, ring and
// page together are Options.Keep, record headers count. Output that fits is one plain run of records. Longer output
// loses its middle: the head and at least the last 1 MiB stay, and a reader sees one gap record between them.
//
// Places in a file are positions: they count on as if the ring never turned (layout.at maps them), so a position means
// the same record for ever and a reader that was overtaken can tell.
//
// Until the ring turns, the file's own end says where the records end, and appending is one write. From then on the page
// says it, because what follows the newest record in the ring is older output, which a job may have shaped like a
// record; each append then writes the page too. A record that may still grow has a header on disk that promises more
// than is there. Both are settled by recovery (recover.go), so that all bytes of an Append that returned survive a
// daemon that is killed.
//
// # Who holds what
//
// Logs knows the streams in use. A stream is shared by one Writer and any number of Readers; the Writer publishes a view
// of it, Readers work from a copy of the view and read the file without a lock. After reading from the ring they check
// that it was not overwritten meanwhile. A Reader never holds up the Writer.
package results
