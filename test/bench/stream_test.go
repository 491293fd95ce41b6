package bench_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

const gib = 1 << 30

// BenchmarkStream measures output that is stored: what a command can write until its job has ended with the bytes kept
// and summed, beside docker's default log driver with an eighth of the bytes. The command is dd: busybox's head copies
// byte by byte and would be what is measured.
func BenchmarkStream(b *testing.B) {
	d := harness.New(b, harness.Options{Config: "[limits]\noutput_keep = \"4GiB\"\n"})
	for range b.N {
		d.Must("run", "-d", "--name", "flood", "--cpus", "2", "--image", image, "--output-keep", "3GiB", "--", "dd", "if=/dev/zero", "bs=256k", fmt.Sprintf("count=%d", 2*gib>>18))
		var r api.Result
		d.JSON(&r, "result", "--wait", "--json", "flood")
		if r.Status != "success" || r.Stream == nil || r.Stream.Stdout != 2*gib || r.Stream.Truncated {
			b.Fatalf("result: %+v", r)
		}
		ours := rate(2*gib, r.Timings.Finished-r.Timings.Started)
		b.ReportMetric(rate(2*gib, r.Timings.Settled-r.Timings.Started), "durable_MB/s") // synced to disk and summed

		began := time.Now()
		out, err := exec.Command("docker", "run", "-d", "--network", "none", image, "dd", "if=/dev/zero", "bs=256k", fmt.Sprintf("count=%d", gib/4>>18)).Output()
		if err != nil {
			b.Fatal(err)
		}
		id := string(out[:len(out)-1])
		defer func() { _ = exec.Command("docker", "rm", "-f", id).Run() }()
		if err := exec.Command("docker", "wait", id).Run(); err != nil {
			b.Fatal(err)
		}
		theirs := gib / 4 / time.Since(began).Seconds() / 1e6
		b.ReportMetric(ours, "sbx_MB/s")
		b.ReportMetric(theirs, "docker_MB/s")
		b.ReportMetric(ours/theirs, "ratio")
		b.ReportMetric(0, "ns/op")
	}
}

func rate(bytes, ms int64) float64 { return float64(bytes) / 1e3 / float64(max(ms, 1)) }
