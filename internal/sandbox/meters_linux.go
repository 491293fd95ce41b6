package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meters are the kernel's figures of the job, through descriptors that stay open: a poll costs four reads and no path.
type meters struct {
	version int

	mu    sync.Mutex // guards all below
	files map[string]*os.File
	peak  int64
	buf   [8192]byte
}

// meterFiles by version: what for, controller, file.
func meterFiles(version int) [][3]string {
	if version == 2 {
		return [][3]string{{"cpu", "", "cpu.stat"}, {"memory", "", "memory.stat"}, {"oom", "", "memory.events"}, {"pids", "", "pids.current"}}
	}
	return [][3]string{{"cpu", "cpuacct", "cpuacct.usage"}, {"memory", "memory", "memory.stat"},
		{"oom", "memory", "memory.oom_control"}, {"pids", "pids", "pids.current"}}
}

func openMeters(c *cgroups) (*meters, error) {
	m := &meters{version: c.h.version, files: map[string]*os.File{}}
	for _, f := range meterFiles(c.h.version) {
		file, err := os.Open(filepath.Join(c.jobDir(f[1]), f[2]))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("figures of the job: %w", err), m.close())
		}
		m.files[f[0]] = file
	}
	return m, nil
}

func (m *meters) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bad []error
	for _, f := range m.files {
		bad = append(bad, f.Close())
	}
	m.files = nil
	return errors.Join(bad...)
}

func (m *meters) read() (Readings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Readings{At: time.Now()}
	var bad []error
	get := func(of string, keys ...string) (sum int64) {
		n, err := m.sumLocked(of, keys)
		if err != nil {
			bad = append(bad, err)
		}
		return n
	}
	r.Pids = get("pids")
	r.OOMKills = get("oom", "oom_kill")
	if m.version == 2 {
		r.CPU = time.Duration(get("cpu", "usage_usec")) * time.Microsecond
		r.Memory = get("memory", "anon", "shmem")
	} else {
		r.CPU = time.Duration(get("cpu"))
		r.Memory = get("memory", "total_rss", "total_shmem")
	}
	if len(bad) > 0 {
		return Readings{}, fmt.Errorf("figures of the job: %w", errors.Join(bad...))
	}
	m.peak = max(m.peak, r.Memory)
	r.MemoryPeak = m.peak
	return r, nil
}

// sumLocked adds the numbers after the keys in a file of "key number" lines; without keys the file is one number.
func (m *meters) sumLocked(of string, keys []string) (int64, error) {
	f := m.files[of]
	if f == nil {
		return 0, os.ErrClosed
	}
	n, err := f.ReadAt(m.buf[:], 0)
	if n == 0 {
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	text := string(m.buf[:n])
	if len(keys) == 0 {
		return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	}
	sum, found := int64(0), 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !slices.Contains(keys, name) {
			continue
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f.Name(), err)
		}
		sum += v
		found++
	}
	if found != len(keys) {
		return 0, fmt.Errorf("%s: has not all of %v", f.Name(), keys)
	}
	return sum, nil
}
