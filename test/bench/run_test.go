package bench_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/test/harness"
)

const image = "sandboxd/tiny:latest"

// rounds of each side; they take turns.
const rounds = 20

// BenchmarkRunCold compares the whole life of a job, from the shell's point of view, with a container made for it.
func BenchmarkRunCold(b *testing.B) { runTrue(b, "[engine]\nwarm_slots = 0\n") }

// BenchmarkRunWarm is the same with the daemon's defaults, which keep containers ready.
func BenchmarkRunWarm(b *testing.B) { runTrue(b, "") }

func runTrue(b *testing.B, config string) {
	b.Helper()
	d := harness.New(b, harness.Options{Config: config})
	docker := dockerFlags(b, d)
	for range b.N {
		var ours, theirs []time.Duration
		for range rounds {
			ours = append(ours, timed(b, d.Command(context.Background(), "run", "--image", image, "--", "true")))
			theirs = append(theirs, timed(b, exec.Command("docker", append(slices.Clone(docker), image, "true")...)))
		}
		o, t := median(ours), median(theirs)
		b.ReportMetric(ms(o), "sbx_ms")
		b.ReportMetric(ms(t), "docker_ms")
		b.ReportMetric(ms(o)/ms(t), "ratio")
		b.ReportMetric(0, "ns/op")
	}
}

// dockerFlags render the settings of a job's container for the docker CLI, from a live one.
func dockerFlags(b *testing.B, d *harness.Daemon) []string {
	b.Helper()
	d.Must("run", "-d", "--name", "model", "--image", image, "--", "sleep", "60")
	var boxes []string
	for deadline := time.Now().Add(10 * time.Second); len(boxes) == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		boxes = d.Containers()
	}
	if len(boxes) == 0 {
		b.Fatal("no container to take the settings from")
	}
	out, err := exec.Command("docker", "inspect", "-f", "{{json .HostConfig}}", boxes[0]).Output()
	if err != nil {
		b.Fatal(err)
	}
	d.Must("cancel", "--kill", "model")
	var hc struct {
		SecurityOpt []string
		Tmpfs       map[string]string
	}
	if err := json.Unmarshal(out, &hc); err != nil {
		b.Fatal(err)
	}
	flags := []string{"run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--ipc", "none", "--user", "1900000000:1900000000",
		"--memory", "1048m", "--memory-swap", "1048m", "--cpus", "1", "--pids-limit", "544", "--ulimit", "core=0", "--ulimit", "nofile=1024"}
	for _, o := range hc.SecurityOpt {
		if text, ok := strings.CutPrefix(o, "seccomp="); ok {
			file := filepath.Join(b.TempDir(), "seccomp.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			o = "seccomp=" + file
		}
		flags = append(flags, "--security-opt", o)
	}
	for at, opts := range hc.Tmpfs {
		flags = append(flags, "--tmpfs", at+":"+opts)
	}
	return flags
}

func timed(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return time.Since(began)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
