package search

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkAgainstRipgrep runs each query with the engine, nothing prepared,
// and with a new rg, by turns, and reports the ratio of the medians. The goal
// (design: search) is at most .35 on a small tree, .75 on larger ones, and
// never above 1. TOOLHOST_BENCH names a further tree.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg := ripgrep(b)
	src := goSource(b)
	trees := map[string]string{"small": filepath.Join(src, "encoding"), "go": src}
	if more := os.Getenv("TOOLHOST_BENCH"); more != "" {
		trees["more"] = more
	}
	for _, tree := range []string{"small", "go", "more"} {
		root, ok := trees[tree]
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
			if ok {
				b.Run(tree+"/"+q.Pattern, func(b *testing.B) { benchmarkPair(b, rg, root, q) })
			}
		}
	}
}

func benchmarkPair(b *testing.B, rg, root string, q GrepQuery) {
	q.Scope = Scope{Base: root, Path: root}
	e := quiet(Config{})
	args := append([]string{"--no-config", "--hidden", "--no-messages", "--color=never", "--no-heading", "-g", "!.git"}, grepArgs(q)...)
	if i := slices.Index(args, "--sort"); i >= 0 {
		args = slices.Delete(args, i, i+2) // it would run on one thread
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		t := time.Now()
		if _, err := e.Grep(context.Background(), q); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(t))
		cmd := exec.Command(rg, args...)
		cmd.Dir = root
		t = time.Now()
		_, _ = cmd.Output() // exit code 1 means no match
		theirs = append(theirs, time.Since(t))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	own, rgs := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(own)/float64(rgs), "ratio")
	b.ReportMetric(float64(rgs.Microseconds())/1000, "rg-ms")
	b.ReportMetric(float64(own.Microseconds())/1000, "own-ms")
}
