package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Waits between tries of a lost connection. The lease of a job lasts 10 s without one, so they stay short.
const (
	firstWait = 50 * time.Millisecond
	longWait  = time.Second
)

// steady is how long a connection must have lasted to count as the end of a trouble.
const steady = 5 * time.Second

// patience waits for a daemon that went away, for at most limit in one trouble.
type patience struct {
	limit time.Duration
	since time.Time // when the present trouble began; zero in good times
	pause time.Duration
}

// calm ends a trouble.
func (p *patience) calm() { p.since = time.Time{} }

// worn waits before the next try. It returns nil when there shall be one, err when the trouble lasts too long, and
// the context's cause when that ended.
func (p *patience) worn(ctx context.Context, err error) error {
	now := time.Now()
	if p.since.IsZero() {
		p.since, p.pause = now, firstWait
	}
	if now.Sub(p.since) > p.limit {
		return err
	}
	pause := p.pause/2 + rand.N(p.pause) // many that were put off together do not come back together
	p.pause = min(p.pause*2, longWait)
	return sleep(ctx, pause)
}

// sleep returns nil after d, or the context's cause when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passing reports whether err may be gone at the next try: the daemon is away, restarting or draining.
func passing(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrNoDaemon) || errors.Is(err, ErrNoAnswer) ||
		IsCode(err, CodeUnavailable) || IsCode(err, CodeDraining) || IsCode(err, CodeRateLimit)
}

// paced repeats an exchange that the daemon put off because too many came in a short time, for at most
// Options.RetryFor. Nothing of it was carried out.
func (c *Client) paced(ctx context.Context, once func() error) error {
	p := patience{limit: c.retryFor}
	for {
		err := once()
		if !IsCode(err, CodeRateLimit) {
			return err
		}
		if err := p.worn(ctx, err); err != nil {
			return err
		}
	}
}

// insist repeats an idempotent exchange whose connection was cut. A daemon that was away from the start, and a
// refusal of any kind, are returned at once.
func (c *Client) insist(ctx context.Context, once func() error) error {
	p := patience{limit: c.retryFor}
	for contact := false; ; {
		err := once()
		switch {
		case errors.Is(err, ErrLost):
			contact = true
		case contact && passing(err):
		default:
			return err
		}
		if err := p.worn(ctx, err); err != nil {
			return err
		}
	}
}

// met reports whether the daemon has ever answered this client.
func (c *Client) met() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version != nil
}
