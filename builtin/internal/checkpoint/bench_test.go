//go:build linux

package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// source17k makes a repository of 17,000 files and 190 MB, as a large project has.
func source17k(b *testing.B) string {
	root := newRoot(b)
	words := rand.New(rand.NewPCG(1, 2))
	var line strings.Builder
	for d := range 170 {
		dir := filepath.Join(root, fmt.Sprintf("d%d/e%d", d%17, d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 100 {
			line.Reset()
			for line.Len() < 11_000 { // compresses to about a third, as source code does
				fmt.Fprintf(&line, "word%d ", words.IntN(5000)*words.IntN(3))
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(f)), []byte(line.String()), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	sh(b, root, "git init -q; git add -A; git commit -qm 1; git repack -qad")
	return root
}

// BenchmarkBase reads 17,000 files.
func BenchmarkBase(b *testing.B) {
	root := source17k(b)
	for b.Loop() {
		tr, err := New(Config{Root: root, Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		<-tr.Ready()
		tr.Close()
	}
}

// BenchmarkUnchanged is a command that changes nothing among 17,000 files.
func BenchmarkUnchanged(b *testing.B) {
	tr, err := New(Config{Root: source17k(b), Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	<-tr.Ready()
	for b.Loop() {
		tr.Begin(b.Context()).End().Close()
	}
}

// BenchmarkShadowGit compares checkpoints of 200 commands with commits of a shadow repository. The whole counts the base and git's
// first commit too; the commands are what each adds to one command after that. Disk is what both keep in the end.
func BenchmarkShadowGit(b *testing.B) {
	root := source17k(b)
	const commands = 200
	change := func(i int) {
		path := filepath.Join(root, fmt.Sprintf("d%d/e%d/%d", i%17, i%170, i%100))
		if err := os.WriteFile(path, fmt.Appendf(nil, "changed by %d\n", i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		begin := time.Now()
		tr, err := New(Config{Root: root, Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		<-tr.Ready()
		ourBase := time.Since(begin)
		var ours time.Duration
		var kept int64
		for i := range commands {
			begin := time.Now()
			m := tr.Begin(b.Context())
			ours += time.Since(begin)
			change(i)
			begin = time.Now()
			r := m.End()
			for _, c := range r.Changes {
				content, err := r.Content(c)
				if err != nil {
					b.Fatal(err)
				}
				kept += int64(len(content))
			}
			r.Close()
			ours += time.Since(begin)
		}
		disk := tr.files.contents.end + kept
		tr.Close()
		sh(b, root, "git checkout -q .")
		shadow := filepath.Join(b.TempDir(), "shadow")
		git := "git --git-dir=" + shadow + " --work-tree=. "
		begin = time.Now()
		sh(b, root, git+"init -q; "+git+"add -A; "+git+"commit -qm 0")
		theirBase := time.Since(begin)
		begin = time.Now()
		for i := range commands {
			change(i)
			sh(b, root, git+"add -A; "+git+"commit -qm 1")
		}
		theirs := time.Since(begin)
		var size int64
		filepath.Walk(shadow, func(_ string, info os.FileInfo, err error) error {
			if err == nil {
				size += info.Size()
			}
			return nil
		})
		sh(b, root, "git checkout -q .")
		b.ReportMetric((ourBase+ours).Seconds()/(theirBase+theirs).Seconds(), "whole-time-ratio")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "commands-time-ratio")
		b.ReportMetric(float64(disk)/float64(size), "disk-ratio")
		b.ReportMetric(float64(ours.Microseconds())/commands, "µs/command")
	}
}
