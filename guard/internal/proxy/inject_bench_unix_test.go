//go:build unix

package proxy

import (
	"io"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkInject compares requests into which a secret is put with those through a tunnel.
func BenchmarkInject(b *testing.B) {
	data := make([]byte, 100<<20)
	f := newSecretFixture(b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.URL.Path == "/data" {
			w.Write(data)
		}
	})
	tunnel := newSecretFixture(b, nil)
	tunnel.secrets.all = nil
	tunnel.dial, tunnel.rules.Roots = f.dial, f.rules.Roots
	tunnel.roots = f.rules.Roots
	for _, c := range []struct {
		name string
		*secretFixture
	}{{"tunnel", tunnel}, {"inject", f}} {
		do := func(client *http.Client, path string) {
			r, _ := http.NewRequest("GET", "https://example.com"+path, nil)
			r.Header.Set("Authorization", "Bearer "+sentinel)
			answer, err := client.Do(r)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		for _, h2 := range []bool{false, true} {
			proto := map[bool]string{false: "http1", true: "http2"}[h2]
			b.Run(c.name+"/"+proto+"/kept", func(b *testing.B) {
				client := c.client(h2)
				do(client, "/")
				p50(b, func() { do(client, "/") })
			})
			b.Run(c.name+"/"+proto+"/new", func(b *testing.B) {
				p50(b, func() {
					client := c.client(h2)
					do(client, "/")
					client.CloseIdleConnections()
				})
			})
			b.Run(c.name+"/"+proto+"/100MiB", func(b *testing.B) {
				client := c.client(h2)
				b.SetBytes(int64(len(data)))
				p50(b, func() { do(client, "/data") })
			})
		}
	}
}

// p50 reports how long f takes, and how much time of a processor all sides of it take together: the machine may have
// more to do.
func p50(b *testing.B, f func()) {
	var times []time.Duration
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for b.Loop() {
		begun := time.Now()
		f()
		times = append(times, time.Since(begun))
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e3/float64(b.N), "cpu-µs/op")
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
}
