package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// children are what the test binary can be as another process.
var children = map[string]func(ctx context.Context, dir string) error{"hold": hold, "admit": admitForever, "file too large": fileTooLarge, "sync fails": syncFails}

func child(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childEnv+"="+role, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// hold opens the directory, says so, and stays.
func hold(ctx context.Context, dir string) error {
	s := store.New(options(dir))
	if err := s.Open(ctx); err != nil {
		return err
	}
	fmt.Println("open")
	time.Sleep(time.Minute)
	return s.Close()
}

// admitForever admits, moves and ends jobs from 4 goroutines and prints each promise after it was made.
func admitForever(ctx context.Context, dir string) error {
	s := store.New(options(dir))
	if err := s.Open(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	say := func(id job.ID, state job.State) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(id, state)
	}
	for range 4 {
		wg.Go(func() {
			for {
				j := ledgertest.NewJob(noTest{}, 1000)
				if _, _, err := s.Admit(ctx, ledgertest.Admission(j)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				say(j.ID, job.Queued)
				if _, err := s.Claim(ctx, j.ID, store.Claim{Node: ledgertest.Node, Epoch: 1, NowMS: 1}); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				say(j.ID, job.Starting)
				if err := s.Finish(ctx, ledgertest.Success(j, job.Starting)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				say(j.ID, job.Done)
			}
		})
	}
	wg.Wait()
	return s.Close()
}

// noTest lets a child process use the builders of tests.
type noTest struct{ testing.TB }

func (noTest) Helper()           {}
func (noTest) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
