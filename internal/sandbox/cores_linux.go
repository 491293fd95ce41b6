package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// cores spreads jobs over the cores this daemon may use, so that a job sees as many as it was given. It is no wall: a
// job may choose others, its quota holds anyway.
type cores struct {
	usable []int // constant

	mu   sync.Mutex
	load []int // jobs on each of usable
}

func newCores() (*cores, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("the cores of this process: %w", err)
	}
	c := &cores{}
	for cpu := 0; len(c.usable) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			c.usable = append(c.usable, cpu)
		}
	}
	c.load = make([]int, len(c.usable))
	return c, nil
}

// take chooses the ceil(milliCPUs/1000) least loaded cores.
func (c *cores) take(milliCPUs int64) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int(min(max((milliCPUs+999)/1000, 1), int64(len(c.usable))))
	order := make([]int, len(c.usable))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.load[a] - c.load[b] })
	var out []int
	for _, i := range order[:n] {
		c.load[i]++
		out = append(out, c.usable[i])
	}
	slices.Sort(out)
	return out
}

func (c *cores) release(taken []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cpu := range taken {
		if i := slices.Index(c.usable, cpu); i >= 0 && c.load[i] > 0 {
			c.load[i]--
		}
	}
}

// pin gives all threads of a process the cores. A thread made meanwhile has those of its maker, so it goes round until
// it meets no new one.
func pin(p *process, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	done := map[int]bool{}
	for range 8 {
		tids, err := p.threads()
		if err != nil {
			return err
		}
		fresh := false
		for _, tid := range tids {
			if done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process %d: sched_setaffinity: %w", p.pid, err)
			}
			done[tid], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
	return nil
}
