//go:build unix

package search

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAgainstRipgrep runs each query with the engine and with a new rg, by
// turns, and reports the ratio of the medians: first with nothing prepared,
// then with the list kept, then with contents indexed too. The goals (design:
// search) are at most .35 on a small tree, .75 on larger ones with nothing
// prepared, and .06 with everything, .05 and .03 for one page. TOOLHOST_BENCH
// names a further tree. On a busy machine the ratio of processor times, which is
// reported too, says more than that of the clock.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg := ripgrep(b)
	src := goSource(b)
	trees := map[string]string{"small": filepath.Join(src, "encoding"), "go": src}
	if more := os.Getenv("TOOLHOST_BENCH"); more != "" {
		trees["more"] = more
	}
	for _, tree := range []string{"small", "go", "more"} {
		root, ok := trees[tree]
		engines := map[string]*Engine{}
		for _, q := range []GrepQuery{
			{Pattern: `sync\.Mutex`, Mode: Content, LineNumbers: true},
			{Pattern: `nosuchthinganywhere`},
			{Pattern: `func \(.*\) String\(\) string`, Mode: Content, LineNumbers: true},
			{Pattern: `(?i)goroutine leak`, Mode: Content, LineNumbers: true},
			{Pattern: `err`, Mode: FilesWithMatches},
			{Pattern: `err != nil`, Mode: Content, LineNumbers: true},
			{Pattern: `TODO|FIXME|XXX|HACK`, Mode: Count},
			{Pattern: `\b[A-Z]\w+Error\b`, Mode: Count},
			{Pattern: `\w+_\d+\w+X`, Mode: Count},
			{Pattern: `[a-z]+\s+:=\s+range`, Mode: Content, LineNumbers: true, Limit: 250},
			{Pattern: `^\t+return$`, Mode: Count},
			{Pattern: `import`, Mode: FilesWithMatches, Globs: []string{"*.go"}},
			{Pattern: `main`, Types: []string{"go"}, Mode: Content, Before: 2, After: 2, LineNumbers: true},
			{Pattern: `func \w+\([^)]*\n`, Multiline: true, Mode: Count},
		} {
			for _, c := range benchmarked {
				if ok {
					b.Run(tree+"/"+c.name+"/"+q.Pattern, func(b *testing.B) {
						if engines[c.name] == nil {
							c.config.GlobalIgnore = os.DevNull
							engines[c.name] = New(c.config)
						}
						benchmarkPair(b, engines[c.name], rg, root, q)
					})
				}
			}
		}
		for _, e := range engines {
			if err := e.Close(); err != nil {
				b.Error(err)
			}
		}
	}
}

var benchmarked = []struct {
	name   string
	config Config
}{{"first", Config{MaxKept: -1}}, {"list", Config{MaxMemory: -1}}, {"index", Config{}}}

func benchmarkPair(b *testing.B, e *Engine, rg, root string, q GrepQuery) {
	q.Scope = Scope{Base: root, Path: root}
	warm(b, e, q)
	args := grepArgs(q)
	if i := slices.Index(args, "--sort"); i >= 0 {
		args = slices.Delete(args, i, i+2) // it would run on one thread
	}
	byTurns(b, rg, root, args, func() error {
		_, err := e.Grep(context.Background(), q)
		return err
	})
}

// BenchmarkGlobAgainstRipgrep is BenchmarkAgainstRipgrep for Glob and rg --files,
// which does not sort. The goals are at most .03 on a small tree, .008 on Go's.
func BenchmarkGlobAgainstRipgrep(b *testing.B) {
	rg, src := ripgrep(b), goSource(b)
	for _, tree := range []string{"encoding", "."} {
		root := filepath.Join(src, tree)
		scope := Scope{Base: root, Path: root}
		e := keepingHere(b, scope)
		for _, pattern := range []string{"**/*.go", "*_test.go", "**/x*.go"} {
			b.Run(filepath.Base(root)+"/"+pattern, func(b *testing.B) {
				byTurns(b, rg, root, []string{"--files", "-g", pattern}, func() error {
					_, err := e.Glob(context.Background(), GlobQuery{Scope: scope, Pattern: pattern, Limit: 100})
					return err
				})
			})
		}
	}
}

// keepingHere makes an engine that has all in place that it keeps for a scope.
func keepingHere(b *testing.B, s Scope) *Engine {
	e := New(Config{GlobalIgnore: os.DevNull})
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	warm(b, e, GrepQuery{Scope: s, Pattern: "warm"})
	return e
}

// byTurns runs a query of ours and rg, and reports how they compare.
func byTurns(b *testing.B, rg, root string, args []string, query func() error) {
	args = append([]string{"--no-config", "--hidden", "--no-messages", "--color=never", "--no-heading", "-g", "!.git"},
		args...)
	runtime.GC()
	var ours, theirs []time.Duration
	var used, usedByRG time.Duration
	for b.Loop() {
		t, before := time.Now(), processorTime(b)
		if err := query(); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(t))
		used += processorTime(b) - before
		cmd := exec.Command(rg, args...)
		cmd.Dir = root
		t = time.Now()
		_, _ = cmd.Output() // exit code 1 means no match
		theirs = append(theirs, time.Since(t))
		usedByRG += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	own, rgs := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(own)/float64(rgs), "ratio")
	b.ReportMetric(float64(used)/float64(usedByRG), "cpu-ratio")
	b.ReportMetric(float64(rgs.Microseconds())/1000, "rg-ms")
	b.ReportMetric(float64(own.Microseconds())/1000, "own-ms")
}

// processorTime is what this process has used of the processors.
func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// warm lets the engine keep what it can.
func warm(tb testing.TB, e *Engine, q GrepQuery) {
	tb.Helper()
	if e.config.MaxKept < 0 {
		return
	}
	for range 2 { // the first query asks for the index
		settle(tb, e, q.Path)
		if _, err := e.Grep(context.Background(), q); err != nil {
			tb.Fatal(err)
		}
	}
	settle(tb, e, q.Path)
}
