package client_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv("CLIENT_TEST_AS_NOBODY"); socket != "" {
		reportVersionError(socket)
		return
	}
	goleak.VerifyTestMain(m)
}

// socketPath returns a path short enough for a unix socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

// pair starts a fake daemon and a client of it.
func pair(t *testing.T) (*clienttest.Daemon, *client.Client) {
	t.Helper()
	socket := socketPath(t)
	d, err := clienttest.Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(client.Options{Socket: socket, CallTimeout: 5 * time.Second, RetryFor: 5 * time.Second})
	t.Cleanup(func() {
		c.Close()
		d.Close()
	})
	return d, c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func submit(t *testing.T, c *client.Client, command ...string) *api.Job {
	t.Helper()
	job, err := c.Submit(within(t), api.JobRequest{Command: command})
	if err != nil {
		t.Fatal(err)
	}
	return job
}
