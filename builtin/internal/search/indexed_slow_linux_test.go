//go:build slow

package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestIndexedAsWalked asks engines that keep an index, with texts and with hardly any,
// and one that keeps nothing, random questions about odd texts, between random edits:
// the answers are the same, whatever the index left out and whatever was remembered.
func TestIndexedAsWalked(t *testing.T) {
	queries := samples.Rounds(400)
	draw := rand.New(rand.NewPCG(11, 12))
	files := oddTexts()
	for i := range 80 {
		files[fmt.Sprintf("d%d/f%02d.txt", i%7, i)] = oddText(draw)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	walking := quiet(Config{})
	kept := map[string]*Engine{"with texts": keeping(t, Config{}, scope),
		"with an index alone": keeping(t, Config{MaxMemory: 1 << 20}, scope)}
	for n := range queries {
		edited := ""
		if draw.IntN(3) == 0 {
			edited = oddEdit(t, draw, root, names[draw.IntN(len(names))])
		}
		q := oddQuery(draw)
		q.Scope = scope
		want, err := walking.Grep(context.Background(), q)
		if err != nil {
			continue // not a pattern
		}
		for name, e := range kept {
			got, err := e.Grep(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			w := *want
			if q.Limit > 0 { // how many binary files stand after the page depends on who was first
				w.Binary, got.Binary, w.Notes, got.Notes = 0, 0, nil, nil
			}
			if d := cmp.Diff(&w, got); d != "" {
				t.Fatalf("query %d after an edit of %q, %s: %+v (-walked +kept)\n%.3000s", n, edited, name, q, d)
			}
		}
	}
	if err := walking.Close(); err != nil {
		t.Fatal(err)
	}
}

var (
	oddWords = []string{"foo", "bar", "Foo", "STOP", "stop", "ſtop", "kelvin", "\u212aelvin", "needle", "nee", "dle", "é", "世界", "123", "a1b2", "x_y", "_",
		" ", "\t", "\n", "\n", "\r\n", "\r", "\xff", "\xe4\xb8", ".", "(", "\x00"}
	oddAtoms = []string{"foo", "bar", "needle", "stop", "kelvin", "elvin", "123", "nee(dle)?", "(foo|bar)", "(needle|STOP|123)", "[fb][oa][or]", "[a-z]+", `\w+`,
		`\s*`, ".", ".*", "^", "$", `\b`, `\B`, `\d`, "[0-9]+[a-z][0-9]", "é", "世", "[^a]", `\x00`, `\r`, "(?i:FOO)", "(?i:stop)", "(?i)k", `\xff`, "[ks]", "(?-u:b)", "o{2}", "x?"}
)

// oddText is a random text: most are short, some span blocks of what is scanned, few hold
// NUL bytes.
func oddText(draw *rand.Rand) string {
	var b strings.Builder
	words := oddWords[:len(oddWords)-1]
	if draw.IntN(8) == 0 {
		words = oddWords
	}
	size := []int{20, 300, 300, 3000, 30_000}[draw.IntN(5)]
	for range draw.IntN(size) + 1 {
		b.WriteString(words[draw.IntN(len(words))])
	}
	switch draw.IntN(10) {
	case 0:
		return "\xef\xbb\xbf" + b.String()
	case 1:
		return string(utf16Text(b.String(), draw.IntN(2) == 0))
	}
	return b.String()
}

func oddQuery(draw *rand.Rand) GrepQuery {
	var pattern strings.Builder
	for range 1 + draw.IntN(4) {
		pattern.WriteString(oddAtoms[draw.IntN(len(oddAtoms))])
		if draw.IntN(8) == 0 {
			pattern.WriteString("|")
		}
	}
	return GrepQuery{
		Pattern: pattern.String(), Mode: []Mode{FilesWithMatches, Content, Count}[draw.IntN(3)],
		LineNumbers: draw.IntN(2) == 0,
		IgnoreCase:  draw.IntN(3) == 0, Multiline: draw.IntN(4) == 0, Limit: []int{0, 0, 2, 30}[draw.IntN(4)],
		Offset: []int{0, 0, 5}[draw.IntN(3)],
		Before: []int{0, 0, 2}[draw.IntN(3)], After: []int{0, 0, 1}[draw.IntN(3)],
	}
}

// oddEdit changes a file in one of the ways in which files are changed, and says which.
func oddEdit(t *testing.T, draw *rand.Rand, root, name string) string {
	t.Helper()
	path, text := filepath.Join(root, name), oddText(draw)
	way := []string{"written", "renamed over", "turned around", "removed", "emptied"}[draw.IntN(5)]
	var err error
	switch way {
	case "written":
		err = os.WriteFile(path, []byte(text), 0o644)
	case "renamed over":
		if err = os.WriteFile(path+".new", []byte(text), 0o644); err == nil {
			err = os.Rename(path+".new", path)
		}
	case "turned around": // of the same size
		var raw []byte
		if raw, err = os.ReadFile(path); os.IsNotExist(err) {
			return ""
		}
		slices.Reverse(raw)
		err = os.WriteFile(path, raw, 0o644)
	case "removed":
		if err = os.Remove(path); os.IsNotExist(err) {
			return ""
		}
	case "emptied":
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name + " (" + way + ")"
}
