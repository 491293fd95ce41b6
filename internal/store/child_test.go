package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/budget"
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

// admitForever admits trees of a root and two children with budgets, and moves and ends them, from 4 goroutines, and
// prints each promise after it was made.
func admitForever(ctx context.Context, dir string) error {
	s := store.New(options(dir))
	if err := s.Open(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	p := &promises{ctx: ctx, s: s}
	for range 4 {
		wg.Go(func() {
			for p.tree() {
			}
		})
	}
	wg.Wait()
	return s.Close()
}

type promises struct {
	ctx context.Context
	s   *store.SQLite
	mu  sync.Mutex
}

// kept prints what was promised, or what went wrong.
func (p *promises) kept(id job.ID, state job.State, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	fmt.Println(id, state)
	return true
}

func (p *promises) tree() bool {
	root := ledgertest.NewJob(noTest{}, 1000)
	below := []job.Job{ledgertest.NewChild(noTest{}, root), ledgertest.NewChild(noTest{}, root)}
	if !p.start(budgeted(root, budget.Limits{budget.CPUMS: 1000, budget.ToolCalls: 10})) || !p.run(root) {
		return false
	}
	for _, c := range below {
		if !p.start(budgeted(c, budget.Limits{budget.CPUMS: 300})) {
			return false
		}
	}
	if !p.run(below[0]) || !p.finish(below[0], job.Running) {
		return false
	}
	_, _, err := p.s.Cancel(p.ctx, below[1].ID, store.Cancel{Reason: job.ReasonParentEnd, NowMS: 1})
	return p.kept(below[1].ID, job.Done, err) && p.finish(root, job.Running)
}

func (p *promises) start(a store.Admission) bool {
	_, _, err := p.s.Admit(p.ctx, a)
	return p.kept(a.Job.ID, job.Queued, err)
}

func (p *promises) run(j job.Job) bool {
	_, err := p.s.Claim(p.ctx, j.ID, store.Claim{Node: ledgertest.Node, Epoch: 1, NowMS: 1})
	if !p.kept(j.ID, job.Starting, err) {
		return false
	}
	err = p.s.Move(p.ctx, store.Move{ID: j.ID, Attempt: 1, From: job.Starting, To: job.Running, NowMS: 1})
	return p.kept(j.ID, job.Running, err)
}

func (p *promises) finish(j job.Job, from job.State) bool {
	f := ledgertest.Success(j, from)
	f.Measured = map[string]int64{"cpu_ms": 7}
	return p.kept(j.ID, job.Done, p.s.Finish(p.ctx, f))
}

// noTest lets a child process use the builders of tests.
type noTest struct{ testing.TB }

func (noTest) Helper()           {}
func (noTest) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
