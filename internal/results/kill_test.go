package results_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// killEnv makes the test binary a daemon that only writes one stream: "dir id keep".
const killEnv = "RESULTS_TEST_WRITER"

// endless is the i-th append of the stream that the killed daemons write: the same for all of them.
func endless(i int) (kind uint8, p []byte) {
	size := 1 + i*i%97
	if i%13 == 0 {
		size = 1 + i*7919%100_000
	}
	return uint8(1 + i/3%2), noise(uint64(i), size)
}

// writeUntilKilled appends from the mark on and tells the seq of each append that returned, as an ack would.
func writeUntilKilled() {
	args := strings.Fields(os.Getenv(killEnv))
	keep, _ := strconv.ParseInt(args[2], 10, 64)
	l := results.New(args[0])
	o := results.Options{Keep: keep}
	w, err := l.Reopen(job.ID(args[1]), o)
	if job.CodeOf(err) == job.CodeNotFound && err != nil {
		w, err = l.Create(job.ID(args[1]), o)
	}
	if err != nil {
		panic(err)
	}
	mark, _ := w.Committed()
	for i := int(mark.Seq); ; i++ {
		kind, p := endless(i)
		if err := w.Append(kind, int64(i)*1e6, p); err != nil {
			panic(err)
		}
		fmt.Println(i)
		if i%50 == 49 {
			if err := w.Commit(results.Mark{Seq: uint64(i + 1)}); err != nil {
				panic(err)
			}
		}
	}
}

// A daemon that is killed at any moment, again and again, loses no byte whose append returned, and the one after it takes
// no byte twice.
func TestKilledDaemonLosesNothing(t *testing.T) {
	for _, keep := range []int64{results.MinKeep, 64 << 20} {
		dir, id := t.TempDir(), newID(t)
		acked := -1
		for round := range 12 {
			acked = max(acked, killRound(t, dir, id, keep, time.Duration(5+round*3)*time.Millisecond))
		}
		l := results.New(dir)
		w, err := l.Reopen(id, results.Options{Keep: keep})
		must(t, err)
		out, errs := w.Sums()
		m := &model{}
		last := 0
		for ; uint64(len(m.bytes)) < out.Bytes+errs.Bytes; last++ {
			m.add(endless(last))
		}
		if over := len(m.bytes) - int(out.Bytes+errs.Bytes); over > 0 { // a part of the newest append
			m.bytes, m.kinds = m.bytes[:len(m.bytes)-over], m.kinds[:len(m.kinds)-over]
		}
		if last <= acked || !bytes.HasSuffix(m.of(results.KindStdout), w.Tail()) {
			t.Errorf("%d appends are there, %d returned", last, acked+1)
		}
		got := m.check(t, l, id, 0)
		t.Logf("keep %d: %d appends, %d bytes, %d left out", keep, last, len(m.bytes), got.left)
		must(t, l.Close())
	}
}

func killRound(t *testing.T, dir string, id job.ID, keep int64, after time.Duration) (acked int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", killEnv, dir, id, keep))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(pipe)
	acked = -1
	for first := true; ; first = false {
		line, err := lines.ReadString('\n')
		if err == io.EOF || !strings.HasSuffix(line, "\n") {
			break
		}
		must(t, err)
		if first {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		acked, err = strconv.Atoi(strings.TrimSpace(line))
		must(t, err)
	}
	_ = cmd.Wait() // it was killed
	if stderr.Len() > 0 {
		t.Fatalf("the writer says: %s", stderr.String())
	}
	return acked
}
