package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
)

// TestUnkeptTexts: files of which no text is kept are found as by an engine that keeps
// nothing.
func TestUnkeptTexts(t *testing.T) {
	const size = 8 << 10
	line := strings.Repeat("y", 99) + "\n"
	many := strings.Repeat(line, 3*size/len(line))
	files := map[string]string{
		"first.txt":    "needle\n" + many,
		"last.txt":     many + "needle",
		"ended.txt":    many + "needle\r\n",
		"across.txt":   line[1:] + strings.Repeat(line, size/len(line)-1) + strings.Repeat("z", size%len(line)-2) + "needle\n" + many,
		"edge.txt":     strings.Repeat("z", size-1) + "\nneedle\n",
		"full.txt":     strings.Repeat("z", size-7) + "\nneedle",
		"long.txt":     strings.Repeat("z", 3*firstRead) + "needle\n" + many,
		"longlast.txt": many + strings.Repeat("z", 2*firstRead) + "\nneedle",
		"mark.txt":     "\xef\xbb\xbfneedle\n" + many,
		"marks.txt":    many + "\xef\xbb\xbfneedle\n" + many,
		"wide.txt":     wide(many + "needle\n" + many),
		"none.txt":     many,
		"kelvin.txt":   many + "K1\n",
		"empty.txt":    many + "\n" + many,
		"end.txt":      many + "\n",
		"small.txt":    "needle",
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	e.texts.maxTexts = 0 // from here on no text is kept
	for range maxUses + 1 {
		e.texts.evict(0)
	}
	plain := New(Config{MaxKept: -1})
	defer plain.Close()
	for _, pattern := range []string{"needle", "^needle$", "needle$", `^\w+needle`, "k1", "(?i)k1", "(?i)NEEDLE", "^$",
		"y{99}$", "nosuch", `^needle\b|zzy`} {
		q := GrepQuery{Scope: scope, Pattern: pattern}
		want, err := plain.Grep(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := e.Grep(context.Background(), q)
			if err != nil || got.Text != want.Text {
				t.Errorf("%s: %q, %v, want %q", pattern, got.Text, err, want.Text)
			}
		}
	}
}

// TestChangedUnderQuery changes a file of which no text is kept between the moment a query has heard of all changes and
// the one when it reads the file, and puts its time back: what that query notes of it must mislead none of the next.
func TestChangedUnderQuery(t *testing.T) {
	old, changed := "needle\n"+strings.Repeat("y", 8<<10), "other!\n"+strings.Repeat("y", 8<<10)
	for _, mode := range []Mode{FilesWithMatches, Content, Count} {
		root := writeTree(t, map[string]string{"a.txt": old, "b.txt": old, "c.txt": "hay"})
		scope, path := Scope{Base: root, Path: root}, filepath.Join(root, "a.txt")
		e := keeping(t, Config{}, scope)
		for range maxUses + 1 {
			e.texts.evict(0)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		needle, other := GrepQuery{Scope: scope, Pattern: "needle", Mode: mode}, GrepQuery{Scope: scope,
			Pattern: "other!", Mode: mode}
		p, err := pattern.Compile(needle.Pattern, pattern.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.list(context.Background(), scope, &selection{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, []byte(changed), 0o644),
			os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
			t.Fatal(err)
		}
		newSearch(e.config, &needle, p, l).runAll(context.Background())
		l.close()
		for range 3 {
			for _, q := range []*GrepQuery{&needle, &other} {
				if r, err := e.Grep(context.Background(), *q); err != nil || r.Files != 1 ||
					strings.Contains(r.Text, "a.txt") != (q == &other) {
					t.Errorf("mode %d, %s: %q, %v", mode, q.Pattern, r.Text, err)
				}
			}
		}
	}
}
