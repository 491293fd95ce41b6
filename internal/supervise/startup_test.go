package supervise_test

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// From exec of init to ready: connect, handshake, fork and exec of the stub, its probes.
func TestStartupTime(t *testing.T) {
	var took []time.Duration
	for range 15 {
		d := prepare(t)
		cmd := exec.Command(initBinary, "--socket", d.socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		from := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d.fill()
		took = append(took, time.Since(from))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	slices.Sort(took)
	t.Logf("start to ready: least %v, median %v, most %v", took[0], took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > time.Second {
		t.Error("slow")
	}
}
