//go:build slow

package search

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
)

// TestPages puts pages of every size together, with several workers: order and
// counts are those of the whole.
func TestPages(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("d%d/f%d.txt", i%7, i)] = strings.Repeat("hit\nmiss\n", i%5)
	}
	root := writeTree(t, files)
	for _, mode := range []Mode{Content, Count, FilesWithMatches} {
		whole := mustGrep(t, quiet(Config{Workers: 1}), root, GrepQuery{Pattern: "hit", Mode: mode})
		e := quiet(Config{Workers: 4})
		for _, size := range []int{1, 7, 50} {
			var text strings.Builder
			for at, more := 0, true; more; more = at > 0 {
				r := mustGrep(t, e, root, GrepQuery{Pattern: "hit", Mode: mode, Limit: size, Offset: at})
				text.WriteString(r.Text)
				at = r.NextOffset
			}
			if text.String() != whole.Text {
				t.Errorf("mode %d, pages of %d differ from the whole", mode, size)
			}
		}
	}
}

// TestHostilePatterns: each must end with an answer or an error in bounded
// time and memory; the text is what makes backtracking engines hang.
func TestHostilePatterns(t *testing.T) {
	root := writeTree(t, map[string]string{"a.txt": strings.Repeat("a", 20_000) + "\n" + strings.Repeat("aé", 5_000) + "\n"})
	e := quiet(Config{})
	for _, p := range []string{
		`(a*)*b`, `(a|a)*b`, `(a|aa)+$b`, `(.*)*(.*)*x`, `((a{100}){100}){100}`, `a{1,1000}a{1,1000}b`, `(\w{1,50}){1,50}!`,
		strings.Repeat("a?", 1000) + strings.Repeat("a", 1000) + "b", strings.Repeat("(", 5000),
		strings.Repeat("[", 5000),
		strings.Repeat("a*", 5000), "a" + strings.Repeat("*", 5000), strings.Repeat(`\pL`, 3000), "[" +
			strings.Repeat(`\w\W`, 2500) + "]",
		strings.Repeat("(a|", 200) + "b" + strings.Repeat(")", 200), strings.Repeat("x|", 5000),
		`[\x{0}-\x{10FFFF}]{900}`,
		`(?i)` + strings.Repeat("ſk", 2000), strings.Repeat("é", 5000), `a{4294967296}`, `(a{0,9}){0,9}{0,9}{0,9}{0,9}`,
	} {
		for _, multiline := range []bool{false, true} {
			q := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: p, Multiline: multiline, Mode: Count,
				Timeout: time.Second / 2}
			_, err := e.Grep(context.Background(), q)
			var bad *pattern.Error
			if err != nil && !errors.As(err, &bad) {
				t.Errorf("%.40q: %v", p, err)
			}
		}
	}
}
