package clienttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/api"
)

// run plays one job. Its command is one of
//
//	echo WORDS      write them to stdout          err WORDS    to stderr
//	say WORDS       to stdout, without newline    mixed        lines on both, in turn
//	bytes           every byte value              cat          stdin to stdout
//	request         the request, as JSON          gap          output with 1000 bytes left out
//	hole            the same with 77 bytes, and no record of it
//	exit N          exit code N                   signal N     died of signal N
//	end STATUS REASON DETAIL                      long N       N numbered lines
//	hang            until cancelled               stubborn     until killed
//	ignore          ends by itself 300 ms after a cancel, with exit code 0
//	yes             output without end, until cancelled
//	evil            a summary full of terminal escapes
func (d *Daemon) run(j *fakeJob) {
	defer d.jobWG.Done()
	defer close(j.done)
	if wait := d.now().QueuedFor; wait > 0 {
		time.Sleep(wait)
	}
	d.mu.Lock()
	j.job.State = "running"
	j.job.Timings.Started = time.Now().UnixMilli()
	d.eventLocked(j, "running", nil)
	d.mu.Unlock()

	o := d.play(j)

	d.mu.Lock()
	defer d.mu.Unlock()
	if j.cancelled && o.Status == "" {
		o = api.Outcome{Status: "cancelled", Reason: j.reason, KilledBy: "cancel"}
	}
	o.RunExit, o.StatusExit = exits(o)
	j.job.State, j.job.Outcome = "done", &o
	j.job.Timings.Finished = time.Now().UnixMilli()
	j.job.Timings.Settled = j.job.Timings.Finished
	d.eventLocked(j, "done", map[string]string{"status": o.Status})
}

func (d *Daemon) play(j *fakeJob) api.Outcome {
	cmd := j.req.Command
	words := strings.Join(cmd[1:], " ")
	arg := func(i int) string {
		if i < len(cmd) {
			return cmd[i]
		}
		return ""
	}
	switch cmd[0] {
	case "echo":
		d.write(j, api.KindStdout, []byte(words+"\n"))
	case "say":
		d.write(j, api.KindStdout, []byte(words))
	case "err":
		d.write(j, api.KindStderr, []byte(words+"\n"))
	case "mixed":
		for i := range 3 {
			d.write(j, api.KindStdout, fmt.Appendf(nil, "out %d\n", i))
			d.write(j, api.KindStderr, fmt.Appendf(nil, "err %d\n", i))
		}
	case "bytes":
		for b := range 256 {
			d.write(j, api.KindStdout, []byte{byte(b)})
		}
	case "long":
		n, _ := strconv.Atoi(arg(1))
		for i := range n {
			d.write(j, api.KindStdout, fmt.Appendf(nil, "line %d\n", i))
		}
	case "gap":
		d.write(j, api.KindStdout, []byte("head\n"))
		d.record(j, api.KindGap, binary.BigEndian.AppendUint64(nil, 1000), 1000)
		d.write(j, api.KindStdout, []byte("tail\n"))
	case "hole":
		d.write(j, api.KindStdout, []byte("head\n"))
		d.mu.Lock()
		j.end += 77
		d.mu.Unlock()
		d.write(j, api.KindStdout, []byte("tail\n"))
	case "request":
		b, _ := json.Marshal(j.req)
		d.write(j, api.KindStdout, append(b, '\n'))
	case "cat":
		return d.cat(j)
	case "exit":
		n, _ := strconv.Atoi(arg(1))
		return exited(n)
	case "signal":
		n, _ := strconv.Atoi(arg(1))
		return api.Outcome{Status: "error", Reason: "signal", Signal: n, SignalName: "SIGKILL"}
	case "end":
		return api.Outcome{Status: arg(1), Reason: arg(2), Detail: arg(3)}
	case "evil":
		return api.Outcome{Status: "failed", Reason: "start_failed", Detail: "\x1b]0;owned\x07\x1b[2Jbad\x00\xff\u202e"}
	case "yes":
		for !d.until(after(time.Millisecond), func() bool { return j.cancelled || d.shutdown }) {
			d.write(j, api.KindStdout, bytes.Repeat([]byte("y\n"), 1000))
		}
		return api.Outcome{}
	case "hang", "stubborn", "ignore":
		return d.hang(j, cmd[0])
	default:
		return api.Outcome{Status: "error", Reason: "not_found", Detail: cmd[0] + ": no such file or directory", ExitCode: ptr(127)}
	}
	return exited(0)
}

func (d *Daemon) cat(j *fakeJob) api.Outcome {
	for {
		select {
		case b, ok := <-j.stdinOpen:
			if !ok {
				return exited(0)
			}
			d.write(j, api.KindStdout, b)
		case <-after(10 * time.Millisecond):
			if d.until(after(0), func() bool { return j.cancelled || d.shutdown }) {
				return api.Outcome{}
			}
		}
	}
}

func (d *Daemon) hang(j *fakeJob, how string) api.Outcome {
	d.write(j, api.KindStdout, []byte("ready\n"))
	d.until(nil, func() bool { return j.cancelled && (how != "stubborn" || j.killed) })
	if how == "ignore" {
		time.Sleep(300 * time.Millisecond)
		return exited(0)
	}
	return api.Outcome{}
}

func after(t time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(t, func() { close(c) })
	return c
}

func (d *Daemon) write(j *fakeJob, kind uint8, b []byte) {
	d.record(j, kind, slices.Clone(b), uint64(len(b)))
}

func (d *Daemon) record(j *fakeJob, kind uint8, payload []byte, size uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.stream = append(j.stream, api.Record{Offset: j.end, Time: time.Now().UnixNano(), Kind: kind, Payload: payload})
	j.end += size
	d.touchLocked()
}

func exited(code int) api.Outcome {
	if code == 0 {
		return api.Outcome{Status: "success", ExitCode: ptr(0)}
	}
	return api.Outcome{Status: "error", Reason: "exited", ExitCode: ptr(code)}
}

func ptr[T any](v T) *T { return &v }

func exits(o api.Outcome) (run, status int) {
	run = map[string]int{"timeout": 124, "budget_exhausted": 121, "unverified": 122, "cancelled": 123, "lost": 123, "failed": 125}[o.Status]
	status = map[string]int{"success": 0, "timeout": 2, "failed": 3, "budget_exhausted": 4}[o.Status]
	switch o.Status {
	case "error", "partial":
		run, status = 0, 1
		if o.Status == "partial" {
			status = map[string]int{"iteration_budget": 0, "time_budget": 2}[o.Reason]
		}
		if o.ExitCode != nil {
			run = *o.ExitCode
		}
		if o.Signal > 0 {
			run = 128 + o.Signal
		}
	case "unverified", "cancelled", "lost":
		status = 1
	}
	return run, status
}

// resultOf makes the result of a job that is done; mu is held.
func resultOf(j *fakeJob) api.Result {
	r := api.Result{Schema: api.ResultSchema, Job: j.job.ID, Root: j.job.Root, ParentSession: j.req.ParentSession, Outcome: *j.job.Outcome,
		Timings: j.job.Timings, Usage: api.Usage{WallMS: ptr(int64(1000)), MemoryPeak: ptr(int64(3 << 20))}}
	hash := sha256.New()
	s := &api.Stream{}
	for _, rec := range j.stream {
		switch rec.Kind {
		case api.KindStdout:
			s.Stdout += int64(len(rec.Payload))
			r.Summary += string(rec.Payload)
		case api.KindStderr:
			s.Stderr += int64(len(rec.Payload))
		}
		_, _ = hash.Write(rec.Payload)
	}
	s.Bytes, s.Kept, s.SHA256 = int64(j.end), s.Stdout+s.Stderr, fmt.Sprintf("%x", hash.Sum(nil))
	r.Stream = s
	if j.req.Role != "" {
		r.Delegation = &api.Delegation{Role: j.req.Role, Skills: j.req.Skills, Source: "uid:0"}
	}
	return r
}
