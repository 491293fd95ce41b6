package store_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// refused opens a directory and wants one line with all of the words.
func refused(t *testing.T, dir string, words ...string) {
	t.Helper()
	s := store.New(options(dir))
	err := s.Open(t.Context())
	if err == nil {
		s.Close()
		t.Fatal("it opened")
	}
	for _, w := range append(words, dir) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestSecondDaemonIsRefused(t *testing.T) {
	t.Run("in another process", func(t *testing.T) {
		dir := t.TempDir()
		cmd := child(t, "hold", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("the child did not open")
		}
		refused(t, dir, "in use by another sandboxd", "pid "+strconv.Itoa(cmd.Process.Pid))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		open(t, dir) // a dead holder holds nothing
	})
	t.Run("in this process", func(t *testing.T) {
		dir := t.TempDir()
		open(t, dir)
		refused(t, dir, "in use", "pid "+strconv.Itoa(os.Getpid()))
	})
}

func TestLockIsNotInherited(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, fd := range fds {
		path, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(path, dir) {
			continue
		}
		n, _ := strconv.Atoi(filepath.Base(fd))
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s would be inherited: flags %d, %v", path, flags, err)
		}
		found++
	}
	if found < 3 { // the lock, the database, its log
		t.Errorf("only %d descriptors in the directory", found)
	}
}

func TestStateDirectory(t *testing.T) {
	t.Run("is made for us alone", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b ?%#ü")
		s := open(t, dir)
		ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000))
		for path, want := range map[string]os.FileMode{"": 0o700, "state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600, "lock": 0o600} {
			fi, err := os.Stat(filepath.Join(dir, path))
			if err != nil || fi.Mode().Perm() != want {
				t.Errorf("%q: %v, %v", path, fi, err)
			}
		}
	})
	t.Run("is closed to readers", func(t *testing.T) {
		dir := t.TempDir()
		chmod(t, dir, 0o755)
		open(t, dir)
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", fi.Mode(), err)
		}
	})
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		t.Run(fmt.Sprintf("with mode %o is refused", mode), func(t *testing.T) {
			dir := t.TempDir()
			chmod(t, dir, mode)
			refused(t, dir, "written by others", "chmod 0700 "+dir)
		})
	}
	t.Run("of another user is refused", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give a directory away")
		}
		dir := t.TempDir()
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "belongs to uid 12345", "chown")
	})
	t.Run("that is a file is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "not a directory")
	})
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// closedStore is a directory with jobs of a store that was closed.
func closedStore(t *testing.T, jobs int) (dir, db string) {
	t.Helper()
	dir = t.TempDir()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range jobs {
		ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "state.db")
}

func TestDamagedFileIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(f *os.File, size int64) error{
		"not a database": func(f *os.File, _ int64) error { _, err := f.WriteAt([]byte("hello, this is text"), 0); return err },
		"cut in half":    func(f *os.File, size int64) error { return f.Truncate(size / 2 / 4096 * 4096) },
		"pages of zeros": func(f *os.File, size int64) error { _, err := f.WriteAt(make([]byte, size/2), 8192); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir, db := closedStore(t, 100)
			f, err := os.OpenFile(db, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			fi, err := f.Stat()
			if err := errors.Join(err, spoil(f, fi.Size()), f.Close()); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, "damaged or unreadable", "backup")
		})
	}
}

// TestDamageFoundWhileWorking opens a large file with a damaged page in a table that a start does not need.
func TestDamageFoundWhileWorking(t *testing.T) {
	dir, db := closedStore(t, 100)
	at := strings.LastIndex(read(t, db), `"command":["true"]`)
	if at < 0 {
		t.Fatal("no spec found in the file")
	}
	f, err := os.OpenFile(db, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 4096), int64(at/4096*4096))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "damaged")
	o := options(dir)
	o.WholeCheck = 1
	s := store.New(o)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	select {
	case err := <-s.Fatal():
		if !strings.Contains(err.Error(), "damaged") {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the damage was not found")
	}
	if _, err := s.Boot(t.Context()); job.CodeOf(err) != job.CodeInternal {
		t.Errorf("writing went on: %v", err)
	}
}

func TestForeignAndNewerFilesAreRefusedUntouched(t *testing.T) {
	for name, test := range map[string]struct {
		spoil string
		words []string
	}{
		"a newer schema":             {"PRAGMA user_version = 99", []string{"schema 99", "newer sandboxd"}},
		"another program's database": {"PRAGMA application_id = 7", []string{"another program"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, db := closedStore(t, 1)
			sqlDo(t, db, test.spoil)
			before := read(t, db)
			refused(t, dir, test.words...)
			if read(t, db) != before {
				t.Error("the file was changed")
			}
		})
	}
	t.Run("tables without a mark", func(t *testing.T) {
		dir := t.TempDir()
		sqlDo(t, filepath.Join(dir, "state.db"), "CREATE TABLE jobs(x)")
		refused(t, dir, "another program")
	})
}

func sqlDo(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReopenKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	j := ledgertest.NewJob(t, 1000)
	var instance string
	for boot := int64(1); boot <= 3; boot++ {
		s := store.New(options(dir))
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if boot == 1 {
			ledgertest.Admit(t, s, j)
		}
		id, err := s.Instance(t.Context())
		if err != nil || instance != "" && id != instance {
			t.Errorf("instance %q after %q, %v", id, instance, err)
		}
		instance = id
		if n, err := s.Boot(t.Context()); err != nil || n != boot {
			t.Errorf("boot %d counted as %d, %v", boot, n, err)
		}
		if _, err := s.Job(t.Context(), j.ID); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(filepath.Join(dir, "state.db-wal")); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("a log is left after close: %v, %v", fi, err)
		}
	}
}

func TestCallsAroundOpenAndClose(t *testing.T) {
	s := store.New(options(t.TempDir()))
	check := func(when string) {
		t.Helper()
		_, _, errWrite := s.Admit(t.Context(), ledgertest.Admission(ledgertest.NewJob(t, 1000)))
		_, errRead := s.Jobs(t.Context(), store.Viewer{All: true}, store.Filter{})
		if job.CodeOf(errWrite) != job.CodeUnavailable || job.CodeOf(errRead) != job.CodeUnavailable {
			t.Errorf("%s: write %v, read %v", when, errWrite, errRead)
		}
	}
	check("before open")
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		check("after close")
	}
}
