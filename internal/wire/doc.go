// Package wire is the protocol between the daemon and sbx-init, PID 1 of a job container: its frames, its messages,
// their bounds and the handshake. Both sides use this one codec and neither trusts the other.
//
// A frame is a header of 24 bytes, all numbers big-endian, and a payload of at most MaxPayload bytes:
//
//	 0        4      5        6       8          16          24
//	+--------+------+--------+-------+-----------+-----------+=========+
//	|  len   | type | stream | flags |    seq    |   time    | payload |
//	|  u32   |  u8  |   u8   |  u16  |    u64    |    i64    | len     |
//	+--------+------+--------+-------+-----------+-----------+=========+
//
// time is CLOCK_BOOTTIME in nanoseconds at the sender and is never negative. flags bit 0 (More) says that the message
// goes on in the next frame of the same type; only start may use it, up to MaxStart bytes in all.
//
// A life, with a daemon restart in it (see types.go for the numbers):
//
//	init                                         daemon
//	 | hello{fresh}            ---------------->  |  first connection on the slot's socket
//	 |  <----------------  welcome{key, epoch}    |
//	 | ready{stub pid}      1  ---------------->  |  moves the stub into its cgroup
//	 |  <----------------------------- 1 start    |
//	 | started              2  ---------------->  |
//	 | output               3  ---------------->  |  stores it
//	 |  <-------------------------- ack{seq: 3}   |  may be forgotten by init now
//	 | output               4  -------->  X       |  daemon dies
//	 | hello{resume, nonce}    ---------------->  |
//	 |  <----------- challenge{epoch, nonce}      |
//	 | proof (init)            ---------------->  |
//	 |  <----------- proof (daemon){last_seq: 3}  |
//	 | output               4  ---------------->  |  sent again
//	 | exited               5  ---------------->  |
//	 |  <-------------------------- ack{seq: 5}   |
//	 |  <------------------------------- 1 end    |  init exits
//
// Frames from init that carry an event of the job are numbered 1, 2, 3, … over the whole life of the job, kept by init
// until acked and sent again after a reconnect. Frames to init that carry an order are numbered from 1 on each
// connection. All others (handshake, heartbeat, stdin_credit, ack) carry seq 0 and are not kept.
//
// An order may be lost with its connection. After a resume the daemon sends start only when Held.Started is false, goes
// on with stdin at Held.StdinGot, and sends a cancel and the lease again: neither does harm twice.
package wire
