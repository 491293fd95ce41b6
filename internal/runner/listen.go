package runner

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/wire"
)

// ackEvery is how many bytes of output are stored before an ack goes out while more is coming, so that init never
// waits for one: a quarter of what it may hold unacked.
const ackEvery = 1 << 20

// silence is how long init may be without a word before the connection counts as dead: six heartbeats.
const silence = 6 * wire.HeartbeatEvery

// listen starts the goroutine that reads this connection. It ends with exactly one message that carries err or exited,
// and the channel is closed after it.
func (c *course) listen() {
	frames := make(chan received)
	c.frames = frames
	conn := c.slot.Conn()
	go func() {
		defer close(frames)
		frames <- c.read(conn)
	}()
}

func (c *course) read(conn *wire.Conn) received {
	var unacked int
	var acked uint64
	ack := func() error {
		at := conn.Position()
		if at.Seq == acked {
			return nil
		}
		if err := c.out.Commit(results.Mark{Seq: at.Seq, Stage: uint8(at.Stage)}); err != nil {
			return &storageError{err}
		}
		acked, unacked = at.Seq, 0
		return conn.Send(wire.Ack{Seq: at.Seq})
	}
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		f, err := conn.Next()
		if err != nil {
			return received{err: err}
		}
		switch f.Type {
		case wire.TypeOutput:
			if err := c.out.Append(f.Stream, time.Now().UnixNano(), f.Payload); err != nil {
				return received{err: &storageError{err}}
			}
			unacked += len(f.Payload)
		case wire.TypeStdinCredit:
			m, err := wire.Decode[wire.StdinCredit](f)
			if err != nil {
				return received{err: err}
			}
			c.stdin.credit(m.Bytes, m.Closed)
			continue
		case wire.TypeExited:
			m, err := wire.Decode[wire.Exited](f)
			if err != nil {
				return received{err: err}
			}
			return received{exited: &m, seq: f.Seq}
		}
		if unacked >= ackEvery || conn.Buffered() == 0 {
			if err := ack(); err != nil {
				return received{err: err}
			}
		}
	}
}

// storageError marks that our own stream could not be written.
type storageError struct{ err error }

func (e *storageError) Error() string { return "storing the output: " + e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }

// disconnected decides what the end of the connection means: init connects again, or the job is over without its word.
func (c *course) disconnected(err error) (job.Disposition, bool) {
	var storage *storageError
	if errors.As(err, &storage) {
		return c.abandon(job.Failed, job.ReasonStorage, storage.Error()), true
	}
	var bad *wire.FrameError
	if errors.As(err, &bad) && !errors.Is(bad, wire.ErrTruncated) {
		return c.abandon(job.Lost, job.ReasonInitDied, "init broke the protocol: "+bad.Error()), true
	}
	c.log.Warn().Err(err).Msg("the connection to init is lost")
	return c.reconnect()
}

// reconnect waits for init to come back while the container lives.
func (c *course) reconnect() (job.Disposition, bool) {
	at := c.slot.Conn().Position()
	for {
		ctx, cancel := context.WithTimeout(c.stop, retryEvery)
		held, err := c.slot.Reconnect(ctx, at)
		cancel()
		if err == nil {
			c.stdin.attach(c.slot.Conn(), c.job.Spec, held)
			c.listen()
			return 0, false
		}
		if c.stop.Err() != nil {
			_ = c.out.Detach()
			c.run.slot = nil
			return job.Detached, true
		}
		if reason, detail, gone := c.containerGone(); gone {
			return c.lost(reason, detail), true
		}
		if time.Now().After(c.deadline.Add(c.window() + killSlack)) {
			return c.abandon(job.Lost, job.ReasonInitDied, "init did not connect again before the job's time was over"), true
		}
	}
}

// containerGone asks the engine whether there is still something that may connect.
func (c *course) containerGone() (job.Reason, string, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), killSlack)
	defer cancel()
	st, err := c.slot.Alive(ctx)
	switch {
	case err != nil && c.r.opt.Images.Gone(err):
		return job.ReasonVanished, "the container was removed by somebody else", true
	case err != nil:
		return "", "", false // the engine is away: not a verdict
	case st.Status == "running" || st.Status == "paused":
		return "", "", false
	case st.OOMKilled:
		return job.ReasonInitDied, "init was killed for memory", true
	default:
		return job.ReasonInitDied, "the container ended without init's word (status " + st.Status + ")", true
	}
}
