package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// checkFatal is a child's end: writing has just failed with err, and the store must have stopped for good.
func checkFatal(ctx context.Context, s *store.SQLite, err error) error {
	if job.CodeOf(err) != job.CodeInternal {
		return fmt.Errorf("the write that failed: %w", err)
	}
	select {
	case err := <-s.Fatal():
		fmt.Println("fatal:", err)
	default:
		return errors.New("no fatal error was delivered")
	}
	if _, _, err := s.Admit(ctx, ledgertest.Admission(ledgertest.NewJob(noTest{}, 1000))); job.CodeOf(err) != job.CodeInternal {
		return fmt.Errorf("a write after the fatal error: %w", err)
	}
	if err := s.Journal(ctx, "j", 1, "step", 1); err == nil {
		return errors.New("the journal went on after the fatal error")
	}
	return nil
}

// admitUntilFault admits and prints what was acknowledged until a write fails.
func admitUntilFault(ctx context.Context, s *store.SQLite, bound int) error {
	for range bound {
		j := ledgertest.NewJob(noTest{}, 1000)
		if _, _, err := s.Admit(ctx, ledgertest.Admission(j)); err != nil {
			return checkFatal(ctx, s, err)
		}
		fmt.Println("admitted", j.ID)
	}
	return errors.New("no write failed")
}

// fileTooLarge makes writing fail with EFBIG soon after the start.
func fileTooLarge(ctx context.Context, dir string) error {
	s := store.New(options(dir))
	if err := s.Open(ctx); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	fi, err := os.Stat(filepath.Join(dir, "state.db-wal"))
	if err != nil {
		return err
	}
	limit := uint64(fi.Size()) + 500_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	return errors.Join(admitUntilFault(ctx, s, 10_000), s.Close())
}

// syncFails is run under strace, which makes a sync fail.
func syncFails(ctx context.Context, dir string) error {
	s := store.New(options(dir))
	if err := s.Open(ctx); err != nil {
		return err
	}
	return errors.Join(admitUntilFault(ctx, s, 200), s.Close())
}

func TestFailedWriteIsFatal(t *testing.T) {
	dir := t.TempDir()
	checkPromises(t, dir, child(t, "file too large", dir))
}

func TestFailedSyncIsFatal(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	for _, when := range []string{"20", "45"} {
		t.Run("number "+when, func(t *testing.T) {
			dir := t.TempDir()
			cmd := child(t, "sync fails", dir)
			cmd.Args = []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=" + when, cmd.Path}
			cmd.Path = strace
			checkPromises(t, dir, cmd)
		})
	}
}

// checkPromises runs a child until its fatal error and looks for what it acknowledged.
func checkPromises(t *testing.T, dir string, cmd *exec.Cmd) {
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the child: %v\n%s", err, out)
	}
	s := open(t, dir)
	n, lines := 0, bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "admitted ")
		if !ok {
			continue
		}
		n++
		if _, err := s.Job(t.Context(), job.ID(id)); err != nil {
			t.Error(err)
		}
	}
	if n == 0 || !strings.Contains(string(out), "fatal:") {
		t.Errorf("%d admitted; %s", n, out)
	}
}

// TestFullDisk fills a small file system: writes are refused, nothing is lost, and work goes on once there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Skipf("no small file system can be mounted: %v", err)
	}
	t.Cleanup(func() {
		audit(t, dir)
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := open(t, dir)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	admit := func() error {
		_, _, err := s.Admit(t.Context(), ledgertest.Admission(ledgertest.NewJob(t, 1000)))
		return err
	}
	n := 0
	for ; n < 10_000; n++ {
		if err := admit(); err != nil {
			if job.CodeOf(err) != job.CodeUnavailable || !strings.Contains(err.Error(), dir) {
				t.Errorf("on a full disk: %v", err)
			}
			break
		}
	}
	if err := admit(); job.CodeOf(err) != job.CodeUnavailable {
		t.Errorf("on a full disk, again: %v", err)
	}
	if q, err := s.Queued(t.Context()); err != nil || len(q) != n {
		t.Errorf("%d of %d jobs can be read, %v", len(q), n, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := admit(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	select {
	case err := <-s.Fatal():
		t.Errorf("a full disk was fatal: %v", err)
	default:
	}
}
