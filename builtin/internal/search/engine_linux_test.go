package search

import (
	"context"
	"os"
	"testing"
)

// BenchmarkEngine measures the processor time of queries with the engine alone, in Go's
// source tree or the one that TOOLHOST_BENCH names.
func BenchmarkEngine(b *testing.B) {
	root := benchRoot(b)
	for _, c := range benchmarked {
		e := New(Config{GlobalIgnore: os.DevNull, MaxKept: c.config.MaxKept, MaxMemory: c.config.MaxMemory})
		for _, q := range []GrepQuery{
			{Pattern: `sync\.Mutex`, Mode: Content, LineNumbers: true, Limit: 250},
			{Pattern: `nosuchthinganywhere`},
			{Pattern: `err`, Mode: FilesWithMatches, Limit: 250},
			{Pattern: `err != nil`, Mode: Content, LineNumbers: true},
			{Pattern: `(?i)goroutine leak`, Mode: Content, LineNumbers: true},
			{Pattern: `TODO|FIXME|XXX|HACK`, Mode: Count}, {Pattern: `^\t+return$`, Mode: Count}, {Pattern: `return nil`, Mode: Count},
			{Pattern: `\w+_\d+\w+X`, Mode: Count},
			{Pattern: `[a-z]+\s+:=\s+range`, Mode: Count},
			{Pattern: `func \w+\([^)]*\n`, Multiline: true, Mode: Count},
		} {
			q.Scope = Scope{Base: root, Path: root}
			b.Run("grep/"+c.name+"/"+q.Pattern, func(b *testing.B) {
				warm(b, e, q)
				used(b, func() error {
					_, err := e.Grep(context.Background(), q)
					return err
				})
			})
		}
		for _, pattern := range []string{"**/*.go", "*_test.go", "**/x*.go"} {
			b.Run("glob/"+c.name+"/"+pattern, func(b *testing.B) {
				scope := Scope{Base: root, Path: root}
				warm(b, e, GrepQuery{Scope: scope, Pattern: "warm"})
				used(b, func() error {
					_, err := e.Glob(context.Background(), GlobQuery{Scope: scope, Pattern: pattern, Limit: 100})
					return err
				})
			})
		}
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	}
}

func benchRoot(b *testing.B) string {
	if root := os.Getenv("TOOLHOST_BENCH"); root != "" {
		return root
	}
	return goSource(b)
}

// used reports the processor time of each run.
func used(b *testing.B, run func() error) {
	before := processorTime(b)
	n := 0
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(n), "cpu-us")
}
