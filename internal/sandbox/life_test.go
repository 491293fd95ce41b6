package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// within polls until ok.
func within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

func pids(t testing.TB, sl *sandbox.Slot) int64 {
	t.Helper()
	r, err := sl.Readings()
	if err != nil {
		t.Fatal(err)
	}
	return r.Pids
}

const forkBomb = `b() { b | b & }; b; while :; do b; done`

func TestForkBombIsBoundedAndKilledAndInitReports(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), "exec 2>/dev/null; "+forkBomb)
	within(t, 10*time.Second, "the bomb fills its pids", func() bool { return pids(t, sl) >= r.posture().Pids-8 })
	if n := pids(t, sl); n > r.posture().Pids {
		t.Errorf("%d pids, limit %d", n, r.posture().Pids)
	}
	began := time.Now()
	if err := sl.KillJob(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed in %v", time.Since(began))
	if n := pids(t, sl); n != 0 {
		t.Errorf("%d pids left", n)
	}
	_, ex := follow(t, sl)
	if ex.Signal != int(unix.SIGKILL) {
		t.Errorf("init reports %+v", ex)
	}
	if state, err := sl.Alive(t.Context()); err != nil || state.Status != "running" {
		t.Errorf("init: %+v %v", state, err)
	}
}

func TestMemoryLimitKillsTheJobAndNotInit(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), `echo begin; x=$(tr '\0' a </dev/zero | head -c 200000000); echo end`)
	out, ex := follow(t, sl)
	u, err := sl.Readings()
	if err != nil || u.OOMKills == 0 {
		t.Errorf("readings %+v %v", u, err)
	}
	if strings.Contains(out, "end") || ex.Code == 0 && ex.Signal == 0 {
		t.Errorf("output %q %+v", out, ex)
	}
	if state, err := sl.Alive(t.Context()); err != nil || state.Status != "running" {
		t.Errorf("init: %+v %v", state, err)
	}
}

func TestFullTmpfsIsENOSPCAndCountedToTheJob(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), `for d in /tmp /home/job /out /run; do
		dd if=/dev/zero of=$d/x bs=64k 2>&1 | grep -o 'No space'; du -k $d/x | cut -f1; rm $d/x; done
		dd if=/dev/zero of=/out/x bs=64k 2>/dev/null
		cd /tmp; touch $(seq 1 1200) 2>/dev/null; ls | wc -l; echo full; sleep 60`)
	out := readUntil(t, sl, "full\n")
	u, err := sl.Readings()
	if err != nil || u.Memory < 8<<20 || u.MemoryPeak < u.Memory {
		t.Errorf("readings %+v %v", u, err)
	}
	if err := sl.KillJob(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "No space\n8192\nNo space\n8192\nNo space\n8192\nNo space\n1024\n999\nfull\n"
	if out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}

func TestFreezeStopsTheJobAndThawLetsItGoOn(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), `while :; do :; done`)
	within(t, 5*time.Second, "it burns cpu", func() bool { u, _ := sl.Readings(); return u.CPU > 50*time.Millisecond })
	began := time.Now()
	if err := sl.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("frozen in %v", time.Since(began))
	a, _ := sl.Readings()
	time.Sleep(200 * time.Millisecond)
	b, _ := sl.Readings()
	if b.CPU != a.CPU {
		t.Errorf("frozen, and used %v", b.CPU-a.CPU)
	}
	if err := sl.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "it goes on", func() bool { u, _ := sl.Readings(); return u.CPU > b.CPU })
	if err := sl.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sl.KillJob(t.Context()); err != nil {
		t.Fatal("killing a frozen job: ", err)
	}
}

func TestStoppedJobIsKilled(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), `trap '' TERM; sleep 100 & kill -STOP $!; kill -STOP $$`)
	within(t, 5*time.Second, "two processes", func() bool { return pids(t, sl) == 2 })
	if err := sl.KillJob(t.Context()); err != nil {
		t.Fatal(err)
	}
	follow(t, sl)
}

func TestHandOverGivesLimitsAndCores(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	p := r.posture()
	p.MilliCPUs, p.Memory, p.Pids = 1500, 128<<20, 200
	command(t, sl, p, `nproc; cat /sys/fs/cgroup/cpu/job/cpu.cfs_quota_us /sys/fs/cgroup/memory/job/memory.limit_in_bytes \
		/sys/fs/cgroup/memory/job/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory/job/memory.kmem.tcp.limit_in_bytes /sys/fs/cgroup/pids/job/pids.max \
		/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max`)
	out, _ := follow(t, sl)
	want := fmt.Sprintf("2\n150000\n%d\n%d\n%d\n200\n%d\n232\n", 128<<20, 128<<20, 32<<20, 152<<20)
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	p.MilliCPUs, p.Memory, p.Pids = 200, 64<<20, 20 // lower again
	if err := sl.HandOver(t.Context(), p); err == nil {
		t.Error("handed over twice")
	}
}

func TestHandOverRefusesAPostureTheSlotWasNotMadeFor(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	for name, change := range map[string]func(*envelope.Posture){
		"more tmp": func(p *envelope.Posture) { p.TmpBytes *= 2 }, "no exec": func(p *envelope.Posture) { p.HomeExec = false },
		"another image": func(p *envelope.Posture) { p.ImageID += "0" }, "no memory": func(p *envelope.Posture) { p.Memory = 0 },
		"no pids": func(p *envelope.Posture) { p.Pids = 0 }, "no cpu": func(p *envelope.Posture) { p.MilliCPUs = 0 },
		"memory below tmpfs": func(p *envelope.Posture) { p.Memory = 50 << 20 },
		"more than the host": func(p *envelope.Posture) { p.MilliCPUs = 1 << 40 },
	} {
		p := r.posture()
		change(&p)
		if err := sl.HandOver(t.Context(), p); job.CodeOf(err) == "" || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustDo(t, sl.HandOver(t.Context(), r.posture()))
}

func TestHandOverSeesWhatChangedSinceTheGate(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, sl *sandbox.Slot){
		"a mount": func(t *testing.T, sl *sandbox.Slot) {
			cmd := exec.Command("nsenter", "-t", fmt.Sprint(sl.InitPid()), "-m", "mount", "-t", "tmpfs", "none", "/var")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, text)
			}
		},
		"another cgroup": func(t *testing.T, sl *sandbox.Slot) {
			procs := filepath.Join(sl.Evidence().Cgroups["memory"], "cgroup.procs")
			if err := os.WriteFile(procs, []byte(fmt.Sprint(sl.StubPid())), 0); err != nil {
				t.Fatal(err)
			}
		},
		"no stub": func(t *testing.T, sl *sandbox.Slot) {
			_ = unix.Kill(sl.StubPid(), unix.SIGKILL)
			within(t, 5*time.Second, "the stub is gone", func() bool { return unix.Kill(sl.StubPid(), 0) != nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRoom(t, nil, nil)
			sl := r.fill(t, r.request())
			change(t, sl)
			err := sl.HandOver(t.Context(), r.posture())
			var gate *sandbox.GateError
			if !errors.As(err, &gate) && !errors.Is(err, sandbox.ErrInitDied) {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
		})
	}
}

func TestLaterDaemonAdoptsARunningJob(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), `echo one; read x </dev/null; sleep 1; echo two; exit 7`)
	rec := sl.Record()
	_ = sl.Conn().Close() // the daemon dies

	cfg := r.cfg
	cfg.Epoch = 2
	later := sandbox.New(cfg, r.eng)
	if err := later.Open(t.Context(), []sandbox.SlotRecord{rec}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, _, err := later.Adopt(ctx, withKey(rec, make([]byte, 32)), r.posture(), wire.Position{Seq: 1, Stage: wire.StageReady}); err == nil {
		t.Fatal("adopted with a wrong key")
	}
	// Init turned away from the wrong key keeps trying.
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again, held, err := later.Adopt(ctx, rec, r.posture(), wire.Position{Seq: 1, Stage: wire.StageReady})
	if err != nil {
		t.Fatal(err)
	}
	if !held.Started {
		t.Error("init does not know that it was started")
	}
	out, ex := follow(t, again)
	if out != "one\ntwo\n" || ex.Code != 7 {
		t.Errorf("got %q %+v", out, ex)
	}
	if u, err := again.Readings(); err != nil || u.CPU == 0 {
		t.Errorf("readings %+v %v", u, err)
	}
	if err := again.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func withKey(r sandbox.SlotRecord, key []byte) sandbox.SlotRecord {
	r.Key = key
	return r
}

func TestAdoptRefusesAnotherPosture(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	later := sandbox.New(r.cfg, r.eng)
	if err := later.Open(t.Context(), r.rows.all()); err != nil {
		t.Fatal(err)
	}
	p := r.posture()
	p.Memory = 64 << 20
	_, _, err := later.Adopt(t.Context(), sl.Record(), p, wire.Position{Seq: 1, Stage: wire.StageReady})
	var gate *sandbox.GateError
	if !errors.As(err, &gate) {
		t.Fatalf("got %v", err)
	}
}

func TestAdoptOfADeadContainerSaysSo(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	later := sandbox.New(r.cfg, r.eng)
	if err := later.Open(t.Context(), r.rows.all()); err != nil {
		t.Fatal(err)
	}
	if err := sl.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sl.Kill(t.Context()); err != nil {
		t.Fatal("killing twice: ", err)
	}
	_, _, err := later.Adopt(t.Context(), sl.Record(), r.posture(), wire.Position{})
	if !errors.Is(err, sandbox.ErrInitDied) {
		t.Errorf("got %v", err)
	}
	if err := r.eng.Remove(t.Context(), sl.ContainerID()); err != nil {
		t.Fatal(err)
	}
	if _, _, err = later.Adopt(t.Context(), sl.Record(), r.posture(), wire.Position{}); engine.KindOf(err) != engine.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestMainThreadStaysInTheHostsNamespaces(t *testing.T) {
	before, _ := os.Readlink("/proc/self/ns/mnt")
	r := openRoom(t, nil, nil)
	for range 5 {
		sl := r.fill(t, r.request())
		if err := sl.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := os.Readlink("/proc/self/ns/mnt"); after != before {
		t.Errorf("mount namespace %s, was %s", after, before)
	}
}
