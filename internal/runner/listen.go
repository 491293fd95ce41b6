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

// sendTimeout bounds one message to init, which always reads: one that does not is frozen or gone.
const sendTimeout = 5 * time.Second

// received is what the reading goroutine passes on: init's last word, that init connected again, or why there is nothing
// more to come.
type received struct {
	exited *wire.Exited
	seq    uint64
	again  bool
	err    error
	reason job.Reason // with err: what became of the container, where that is known
}

// listen starts the goroutine that reads what init sends, over as many connections as it takes. It ends with one message
// that carries exited or err, or when quit is called.
func (c *course) listen() (quit func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.kill))
	c.frames = make(chan received, 1)
	slot := c.slot // the run may have let go of it when quit is called
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.pump(ctx)
	}()
	return func() {
		cancel()
		_ = slot.Conn().Close() // unblocks a read
		<-done
	}
}

func (c *course) pump(ctx context.Context) {
	tell := func(r received) bool {
		select {
		case c.frames <- r:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		conn := c.slot.Conn()
		r := c.read(conn)
		var storage *storageError
		var bad *wire.FrameError
		broken := errors.As(r.err, &bad) && !errors.Is(bad, wire.ErrTruncated)
		if r.exited != nil || errors.As(r.err, &storage) || broken {
			tell(r)
			return
		}
		// Init holds a connection that looks sound to it until this end is closed.
		at := conn.Position()
		_ = conn.Close()
		if ctx.Err() != nil {
			return
		}
		c.log.Warn().Err(r.err).Msg("the connection to init is lost")
		if gone := c.reconnect(ctx, at); gone.err != nil {
			tell(gone)
			return
		}
		if !tell(received{again: true}) {
			return
		}
	}
}

// reconnect waits for init to come back while the container lives.
func (c *course) reconnect(ctx context.Context, at wire.Position) received {
	for {
		try, cancel := context.WithTimeout(ctx, retryEvery)
		held, err := c.slot.Reconnect(try, at)
		cancel()
		if err == nil {
			c.stdin.attach(c.slot.Conn(), c.job.Spec, held)
			return received{}
		}
		if ctx.Err() != nil {
			return received{err: context.Cause(ctx)}
		}
		if reason, detail, gone := c.containerGone(); gone {
			return received{err: errors.New(detail), reason: reason}
		}
	}
}

func (c *course) read(conn *wire.Conn) received {
	var unacked int
	var acked uint64
	ack := func(at wire.Position) error {
		if at.Seq == acked {
			return nil
		}
		if err := c.out.Commit(results.Mark{Seq: at.Seq, Stage: uint8(at.Stage)}); err != nil {
			return &storageError{err}
		}
		acked, unacked = at.Seq, 0
		return send(conn, wire.Ack{Seq: at.Seq})
	}
	for {
		before := conn.Position()
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		f, err := conn.Next()
		if err != nil {
			return received{err: err}
		}
		switch f.Type {
		case wire.TypeOutput:
			if err := c.store(f.Stream, f.Payload); err != nil {
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
			// All output is stored; the last word itself is acked only when the end is committed.
			if err := ack(before); err != nil {
				var storage *storageError
				if errors.As(err, &storage) {
					return received{err: err}
				}
			}
			return received{exited: &m, seq: f.Seq}
		}
		if unacked >= ackEvery || conn.Buffered() == 0 {
			if err := ack(conn.Position()); err != nil {
				return received{err: err}
			}
		}
	}
}

// send gives init one message within sendTimeout. A connection that does not take it is closed, so that the reading side
// looks for a new one.
func send(conn *wire.Conn, m wire.Message) error {
	return within(conn, func() error { return conn.Send(m) })
}

func within(conn *wire.Conn, do func() error) error {
	_ = conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	err := do()
	if err != nil {
		_ = conn.Close()
	}
	return err
}

// storageError marks that our own stream could not be written.
type storageError struct{ err error }

func (e *storageError) Error() string { return "storing the output: " + e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }

// disconnected ends a job of which init will say nothing more.
func (c *course) disconnected(r received) job.Disposition {
	var storage *storageError
	switch {
	case errors.As(r.err, &storage):
		return c.abandon(job.Failed, job.ReasonStorage, storage.Error())
	case r.reason != "":
		return c.abandon(job.Lost, r.reason, r.err.Error())
	}
	return c.abandon(job.Lost, job.ReasonInitDied, "init broke the protocol: "+r.err.Error())
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
