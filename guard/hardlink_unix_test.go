//go:build unix

package guard

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

// TestIndex: a rule on one name is one on the file, wherever that name is, as soon as it has another.
func TestIndex(t *testing.T) {
	top := t.TempDir()
	in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
	link := func(from, to string) {
		t.Helper()
		if err := os.Link(filepath.Join(top, from), filepath.Join(top, to)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	err := errors.Join(os.Mkdir(in, 0o755), os.Mkdir(out, 0o755))
	for _, name := range []string{"in/plain", "in/alone", "in/fixed", "out/secret"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(top, name), nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	link("in/plain", "in/twin")
	link("in/fixed", "in/other")
	link("out/secret", "in/alias")

	secret, fixed := &rules.Rule{Text: "secret"}, &rules.Rule{Text: "fixed"}
	x := &linkIndex{Inside: []string{in}, Outside: func() []string { return []string{out} }, Rules: func(name string) (read, edit *rules.Rule) {
		switch {
		case strings.HasPrefix(name, out):
			return secret, nil
		case filepath.Base(name) == "fixed":
			return nil, fixed
		}
		return nil, nil
	}}
	n := x.recent()
	if !n.Complete || !n.Outside || x.recent() != n {
		t.Errorf("complete %v, outside %v, or it was looked for names twice", n.Complete, n.Outside)
	}
	for _, tt := range []struct {
		name   string
		inside int
		read   *rules.Rule
		edit   *rules.Rule
	}{{"plain", 2, nil, nil}, {"alone", 0, nil, nil}, {"other", 2, nil, fixed}, {"alias", 1, secret, nil}} {
		info, err := os.Lstat(filepath.Join(in, tt.name))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := realpath.Identify(info)
		if n.Inside[id] != tt.inside || n.Reads[id] != tt.read || n.Edits[id] != tt.edit {
			t.Errorf("%s: %d names, rules %v and %v", tt.name, n.Inside[id], n.Reads[id], n.Edits[id])
		}
	}
	want := []string{filepath.Join(in, "alias")}
	if got := slices.Sorted(maps.Keys(n.Aliases)); !slices.Equal(got, want) {
		t.Errorf("aliases %q, want %q", got, want)
	}

	link("out/secret", "in/late")
	if late := x.after(time.Now()); !late.Aliases[filepath.Join(in, "late")] || x.recent() != late {
		t.Error("a new name was not found")
	}
	x.MostOutside = 1
	if x.after(time.Now()).Outside {
		t.Error("the bound outside was not noted")
	}
}
