package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

// read returns what a stream brought on stdout and stderr, and the sizes of its gaps.
func read(t *testing.T, c *client.Client, ref string, o client.StreamOptions) (stdout, stderr string, gaps []uint64) {
	t.Helper()
	s, err := c.Stream(within(t), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		r, err := s.Next()
		if errors.Is(err, io.EOF) {
			return stdout, stderr, gaps
		}
		if err != nil {
			t.Fatal(err)
		}
		switch r.Kind {
		case api.KindStdout:
			stdout += string(r.Payload)
		case api.KindStderr:
			stderr += string(r.Payload)
		case api.KindGap:
			gaps = append(gaps, client.GapSize(r))
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestStreamResumesWhereItWasCut(t *testing.T) {
	tests := []struct {
		name   string
		faults clienttest.Faults
	}{
		{"never cut", clienttest.Faults{}},
		{"cut in a payload", clienttest.Faults{CutStream: 24*3 + 7*2 + 3}},
		{"cut in a header", clienttest.Faults{CutStream: 24*5 + 7*4 + 12}},
		{"cut between records", clienttest.Faults{CutStream: 24*4 + 7*4}},
		{"resumed too early", clienttest.Faults{CutStream: 200, Overlap: 10}},
		{"resumed far too early", clienttest.Faults{CutStream: 1000, Overlap: 150}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, c := pair(t)
			d.Set(func(f *clienttest.Faults) { *f = tt.faults })
			job := submit(t, c, "long", "50")
			stdout, _, gaps := read(t, c, job.ID, client.StreamOptions{Follow: true})
			if stdout != lines(50) || gaps != nil {
				t.Errorf("got %q with gaps %v", stdout, gaps)
			}
			if tt.faults.CutStream > 0 && d.Streams() < 2 {
				t.Error("the stream was never cut")
			}
		})
	}
}

func TestStreamSurvivesARestart(t *testing.T) {
	d, c := pair(t)
	job := submit(t, c, "ignore")
	go func() {
		time.Sleep(50 * time.Millisecond)
		d.Stop()
		time.Sleep(200 * time.Millisecond)
		_ = d.Start()
		_, _ = c.Cancel(within(t), job.ID, false)
	}()
	stdout, _, _ := read(t, c, job.ID, client.StreamOptions{Follow: true})
	if stdout != "ready\n" || d.Streams() < 2 {
		t.Errorf("got %q on %d connections", stdout, d.Streams())
	}
}

func TestStreamIsByteExact(t *testing.T) {
	_, c := pair(t)
	var want bytes.Buffer
	for b := range 256 {
		want.WriteByte(byte(b))
	}
	if got, _, _ := read(t, c, submit(t, c, "bytes").ID, client.StreamOptions{Follow: true}); got != want.String() {
		t.Errorf("got %q", got)
	}
}

func TestStreamSelectsAndStartsAnywhere(t *testing.T) {
	d, c := pair(t)
	job := submit(t, c, "mixed")
	if _, err := c.WaitResult(within(t), job.ID); err != nil {
		t.Fatal(err)
	}
	d.Set(func(f *clienttest.Faults) { f.CutStream = 60 })
	stdout, stderr, gaps := read(t, c, job.ID, client.StreamOptions{Follow: true, Only: "stderr"})
	if stdout != "" || stderr != "err 0\nerr 1\nerr 2\n" || gaps != nil {
		t.Errorf("only stderr: %q and %q, gaps %v", stdout, stderr, gaps)
	}
	d.Set(func(f *clienttest.Faults) { f.CutStream = 0 })
	stdout, stderr, _ = read(t, c, job.ID, client.StreamOptions{From: 26})
	if stdout != "ut 2\n"[1:] || stderr != "err 2\n" {
		t.Errorf("from 26: %q and %q", stdout, stderr)
	}
}

func TestGapsAreHandedOut(t *testing.T) {
	_, c := pair(t)
	job := submit(t, c, "gap")
	stdout, _, gaps := read(t, c, job.ID, client.StreamOptions{Follow: true})
	if stdout != "head\ntail\n" || len(gaps) != 1 || gaps[0] != 1000 {
		t.Errorf("got %q with gaps %v", stdout, gaps)
	}
	stdout, _, gaps = read(t, c, job.ID, client.StreamOptions{Follow: true, From: 105})
	if stdout != "tail\n" || len(gaps) != 1 || gaps[0] != 900 {
		t.Errorf("from inside the gap: %q with gaps %v", stdout, gaps)
	}
}

func TestMissingBytesThatWereNotDeclaredAreAGapToo(t *testing.T) {
	_, c := pair(t)
	stdout, _, gaps := read(t, c, submit(t, c, "hole").ID, client.StreamOptions{Follow: true})
	if stdout != "head\ntail\n" || len(gaps) != 1 || gaps[0] != 77 {
		t.Errorf("got %q with gaps %v", stdout, gaps)
	}
}

func TestOutputWithoutAnEndRecordEndsWithItsJob(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.NoEndRecord = true })
	for _, follow := range []bool{true, false} {
		job := submit(t, c, "echo", "hi")
		if _, err := c.WaitResult(within(t), job.ID); err != nil {
			t.Fatal(err)
		}
		if stdout, _, _ := read(t, c, job.ID, client.StreamOptions{Follow: follow}); stdout != "hi\n" {
			t.Errorf("follow %t: got %q", follow, stdout)
		}
	}
}

func TestStreamWithoutFollowEndsAtOnce(t *testing.T) {
	_, c := pair(t)
	job := submit(t, c, "hang")
	for stdout := ""; stdout != "ready\n"; {
		stdout, _, _ = read(t, c, job.ID, client.StreamOptions{})
	}
}

func TestBadRecordsEndTheStream(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.BadRecords = true })
	s, err := c.Stream(within(t), submit(t, c, "echo").ID, client.StreamOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var odd *client.ProtocolError
	if _, err := s.Next(); !errors.As(err, &odd) {
		t.Errorf("error is %v", err)
	}
}

func TestStreamEndsWithItsContextOrClose(t *testing.T) {
	_, c := pair(t)
	job := submit(t, c, "hang")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	s, err := c.Stream(ctx, job.ID, client.StreamOptions{Follow: true, From: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	time.AfterFunc(30*time.Millisecond, func() { cancel(why) })
	if _, err := s.Next(); !errors.Is(err, why) {
		t.Errorf("error is %v, want the cause", err)
	}
	s, err = c.Stream(within(t), job.ID, client.StreamOptions{Follow: true, From: 6})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, s.Close)
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want cancelled", err)
	}
}
