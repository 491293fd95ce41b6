package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// 256 MiB of random bytes have one sha256: as made, on run, on logs -f from the start, on logs afterwards.
func TestOutputIsExactToTheByte(t *testing.T) {
	d := daemon(t)
	dir := sharedDir(t)
	want := sha256.New()
	f, err := os.Create(filepath.Join(dir, "random"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.MultiWriter(f, want), rand.Reader, 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	following := make(chan string, 1)
	go func() {
		for ctx.Err() == nil { // the job's name is known only when it is submitted
			if sum, code := hashOf(d.Command(ctx, "logs", "-f", "bytes")); code == 0 {
				following <- sum
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	run, code := hashOf(d.Command(ctx, "run", "--name", "bytes", "--memory", "512m", "--image", tiny, "-v", dir+":in", "--", "cat", "/mnt/in/random"))
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	after, _ := hashOf(d.Command(ctx, "logs", "bytes"))
	sum := fmt.Sprintf("%x", want.Sum(nil))
	for what, got := range map[string]string{"run": run, "logs -f": <-following, "logs": after} {
		if got != sum {
			t.Errorf("sha256 on %s is %s, want %s", what, got, sum)
		}
	}
}

func hashOf(cmd *exec.Cmd) (sum string, code int) {
	h := sha256.New()
	cmd.Stdout = h
	_ = cmd.Run()
	return fmt.Sprintf("%x", h.Sum(nil)), cmd.ProcessState.ExitCode()
}

func TestNoNewlineIsAddedAndLongLinesAreWhole(t *testing.T) {
	t.Parallel()
	if o := run(t, `printf 'a\nend'`); o.Stdout != "a\nend" {
		t.Errorf("%q", o.Stdout)
	}
	o := run(t, `head -c 1048576 /dev/zero | tr "\0" x; echo`)
	if len(o.Stdout) != 1<<20+1 || strings.Trim(o.Stdout, "x") != "\n" {
		t.Errorf("%d bytes", len(o.Stdout))
	}
	o = run(t, `printf '\000\377\033[31m\r'`)
	if o.Stdout != "\x00\xff\x1b[31m\r" {
		t.Errorf("%q", o.Stdout)
	}
}

func TestTheStreamsStayApart(t *testing.T) {
	t.Parallel()
	o := run(t, `for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 0`, "--name", "apart")
	if o.Stdout != "out1\nout2\nout3\n" || o.Stderr != "err1\nerr2\nerr3\n" {
		t.Errorf("%+v", o)
	}
	if got := daemon(t).Must("logs", "--stream", "stderr", "apart").Stdout + daemon(t).Must("logs", "--stream", "stderr", "apart").Stderr; !strings.Contains(got, "err3") || strings.Contains(got, "out1") {
		t.Errorf("stderr alone: %q", got)
	}
}

func TestStdinReachesTheCommand(t *testing.T) {
	t.Parallel()
	in := make([]byte, 20<<20)
	_, _ = rand.Read(in)
	o := daemon(t).SbxIn(bytes.NewReader(in), "run", "-i", "--image", tiny, "--", "sha256sum")
	if want := fmt.Sprintf("%x  -\n", sha256.Sum256(in)); o.Stdout != want || o.Code != 0 {
		t.Errorf("%+v, want %s", o, want)
	}
	// A command that reads nothing ends all the same.
	if o := daemon(t).SbxIn(bytes.NewReader(in), "run", "-i", "--image", tiny, "--", "true"); o.Code != 0 {
		t.Errorf("%+v", o)
	}
	// Without -i there is none.
	if o := daemon(t).SbxIn(strings.NewReader("secret"), "run", "--image", tiny, "--", "cat"); o.Stdout != "" || o.Code != 0 {
		t.Errorf("%+v", o)
	}
}

func TestResumeByOffset(t *testing.T) {
	t.Parallel()
	run(t, "echo 0123456789", "--name", "offsets")
	if o := daemon(t).Must("logs", "--from", "4", "offsets"); o.Stdout != "456789\n" {
		t.Errorf("%q", o.Stdout)
	}
}

// sharedDir is a folder other users may read, for a job runs under a uid of its own.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sbxt-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
