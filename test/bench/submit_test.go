package bench_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/test/harness"
)

// BenchmarkSubmit measures durable submits: 8 clients, each waiting for its reply. The engine's address leads nowhere,
// so that nothing runs and the queue fills.
func BenchmarkSubmit(b *testing.B) {
	const clients, each, alone = 8, 1250, 300
	d := harness.New(b, harness.Options{Engine: "unix:///run/no-engine.sock", Config: "[capacity]\nmax_queued = 20000\nmax_queued_per_user = 20000\n"})
	body := []byte(`{"command":["true"],"image":"sandboxd/tiny"}`)
	for range b.N {
		var mu sync.Mutex
		var all []time.Duration
		var wg sync.WaitGroup
		began := time.Now()
		for range clients {
			wg.Go(func() {
				c := d.HTTP()
				for range each {
					at := time.Now()
					res, err := c.Post("http://sandboxd/v1/jobs", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					text, _ := io.ReadAll(res.Body)
					_ = res.Body.Close()
					if res.StatusCode != http.StatusCreated {
						b.Errorf("%s: %s", res.Status, text)
						return
					}
					mu.Lock()
					all = append(all, time.Since(at))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if b.Failed() {
			return
		}
		took := time.Since(began)
		slices.Sort(all)
		b.ReportMetric(float64(len(all))/took.Seconds(), "submits/s")
		b.ReportMetric(ms(all[len(all)/2]), "p50_of_8_ms")
		// One client, with 10 000 jobs queued before it.
		var single []time.Duration
		c := d.HTTP()
		for range alone {
			at := time.Now()
			res, err := c.Post("http://sandboxd/v1/jobs", "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			single = append(single, time.Since(at))
		}
		b.ReportMetric(ms(median(single)), "p50_of_1_ms")
		b.ReportMetric(0, "ns/op")
	}
}
