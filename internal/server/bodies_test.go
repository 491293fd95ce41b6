package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

const mib = 1 << 20

// Large requests of one caller wait for each other, then give up; another caller's pass.
func TestRoomForBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := server.NewBodies()
		take := func(principal string, n int64) func() {
			t.Helper()
			release, err := b.Take(t.Context(), principal, n)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, second := take("uid:1", 6*mib), take("uid:1", 6*mib)
		started := time.Now()
		if _, err := b.Take(t.Context(), "uid:1", 64<<10); job.CodeOf(err) != job.CodeUnavailable || time.Since(started) != server.BodyPatience {
			t.Errorf("%v after %s", err, time.Since(started))
		}
		for _, other := range []string{"uid:2", "uid:3", "uid:4"} {
			defer take(other, 12*mib)()
		}
		started = time.Now()
		if _, err := b.Take(t.Context(), "uid:5", 1); job.CodeOf(err) != job.CodeUnavailable || time.Since(started) != server.BodyPatience {
			t.Errorf("%v after %s", err, time.Since(started))
		}
		time.AfterFunc(time.Second, first)
		take("uid:5", 6*mib)()
		second()
		synctest.Wait()
		if n := b.Principals(); n != 3 {
			t.Errorf("%d principals are kept", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Take(ctx, "uid:6", 48*mib); err == nil {
			t.Error("took room without waiting for it")
		}
	})
}
