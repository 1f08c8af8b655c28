package shell

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkTrue compares `true` in a shell started ahead with plain os/exec, in
// turn, so that both see the same machine. Starting the next shell is not
// measured: an agent takes far longer between two commands.
func BenchmarkTrue(b *testing.B) {
	r := newRunner(b, Config{InheritPath: true, Start: startKnown})
	var ours, plain []time.Duration
	for b.Loop() {
		b.StopTimer()
		awaitWarm(b, r)
		t := time.Now()
		b.StartTimer()
		if res, err := r.Run(b.Context(), Command{Text: "true", Dir: "/"}); err != nil || res.ExitCode != 0 {
			b.Fatal(res, err)
		}
		b.StopTimer()
		ours = append(ours, time.Since(t))
		awaitWarm(b, r)
		t = time.Now()
		if out, err := exec.Command("/bin/bash", "-c", "true").CombinedOutput(); err != nil {
			b.Fatal(string(out), err)
		}
		plain = append(plain, time.Since(t))
		b.StartTimer()
	}
	slices.Sort(ours)
	slices.Sort(plain)
	p50, q50 := ours[len(ours)/2], plain[len(plain)/2]
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(q50.Microseconds()), "os/exec-p50-µs")
	b.ReportMetric(float64(p50)/float64(q50), "ratio")
}

// BenchmarkCold runs `true` without a shell started ahead.
func BenchmarkCold(b *testing.B) {
	r := newRunner(b, Config{InheritPath: true, Warm: -1})
	for b.Loop() {
		if res, err := r.Run(b.Context(), Command{Text: "true", Dir: "/"}); err != nil || res.ExitCode != 0 {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkFlood swallows 1 GiB of output, spilling its first 64 MiB.
func BenchmarkFlood(b *testing.B) {
	for name, text := range map[string]string{
		"zeros": "head -c 1073741824 /dev/zero",
		"lines": "yes 'a line of ordinary output, about sixty-four bytes in length' | head -c 1073741824",
	} {
		b.Run(name, func(b *testing.B) {
			r := newRunner(b, Config{InheritPath: true})
			spill := spillTo(b)
			b.SetBytes(1 << 30)
			for b.Loop() {
				if res, err := r.Run(b.Context(), Command{Text: text, Dir: "/", Spill: spill}); err != nil || res.Bytes != 1<<30 {
					b.Fatal(res, err)
				}
			}
		})
	}
}
