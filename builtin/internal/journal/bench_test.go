package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkChange measures what journalling adds to a write and a rename of the same content, both in one run: ×write is the ratio.
func BenchmarkChange(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, err := Open(Config{Dir: filepath.Join(b.TempDir(), "history")})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			dir := b.TempDir()
			file := filepath.Join(dir, "f")
			before, after := make([]byte, size), make([]byte, size)
			random := rand.NewChaCha8([32]byte{})
			_, _ = random.Read(before)
			var writing, journalling time.Duration
			for b.Loop() {
				_, _ = random.Read(after[:64])
				began := time.Now()
				e, err := s.Begin(Change{Principal: "p", Tool: "Edit", Path: file}, before, after)
				if err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				if err := os.WriteFile(file+"~", after, 0o600); err != nil {
					b.Fatal(err)
				}
				if err := os.Rename(file+"~", file); err != nil {
					b.Fatal(err)
				}
				written := time.Now()
				if err := e.End(); err != nil {
					b.Fatal(err)
				}
				writing += written.Sub(begun)
				journalling += begun.Sub(began) + time.Since(written)
				before, after = after, before
			}
			b.ReportMetric(float64(writing.Microseconds())/float64(b.N), "write-µs")
			b.ReportMetric(float64(journalling.Microseconds())/float64(b.N), "journal-µs")
			b.ReportMetric(float64(journalling)/float64(writing), "×write")
		})
	}
}

// BenchmarkFull measures what a journal costs that is as long as it may be: reading it, and tidying it.
func BenchmarkFull(b *testing.B) {
	s, err := Open(Config{Dir: filepath.Join(b.TempDir(), "history")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	j := s.section(sectionName("p"))
	if err := os.MkdirAll(j.dir, ownerDir); err != nil {
		b.Fatal(err)
	}
	records := make([]record, maxChanges)
	for i := range records {
		records[i] = record{owner: s.owner.name, Change: Change{
			ID: shortID(), Time: time.Now(), Principal: "p", Scope: "some-scope", Tool: "Edit",
			Path:   "/home/someone/src/project/internal/file.go",
			Before: BlobOf(fmt.Append(nil, i)), After: BlobOf(fmt.Append(nil, i+1)), State: Done,
		}}
	}
	if err := j.replaceIndex(records, nil); err != nil {
		b.Fatal(err)
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if all, err := s.List(Filter{Principal: "p", Limit: 20}); err != nil || len(all) != 20 {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("tidy", func(b *testing.B) {
		for b.Loop() {
			if err := j.gc(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
