package search

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// TestGlobBrackets: names with brackets, as the routes of web frameworks have them, are found by what they are
// called, but never next to or instead of a file that a choice of characters finds.
func TestGlobBrackets(t *testing.T) {
	root := writeTree(t, map[string]string{
		"app/[id]/page.tsx": "", "app/[user-id]/page.tsx": "", "app/[...all]/page.tsx": "", "app/[[...opt]]/(tab)/page.tsx": "",
		"one/[a]/x.go": "", "one/a/x.go": "", "file[1].txt": "", "app/[id]/old.log": "", ".gitignore": "*.log\n", ".git/HEAD": "",
	})
	for _, tt := range []struct{ pattern, want, note string }{
		{"app/[id]/page.tsx", "app/[id]/page.tsx", "brackets in their names"},
		{"app/[user-id]/**", "app/[user-id]/page.tsx", "brackets in their names"}, // a range that runs backwards
		{"**/[...all]/*.tsx", "app/[...all]/page.tsx", "brackets in their names"},
		{"app/[[...opt]]/(tab)/page.tsx", "app/[[...opt]]/(tab)/page.tsx", "brackets in their names"},
		{"file[1].txt", "file[1].txt", "brackets in their names"},
		{root + "/file[1].txt", "file[1].txt", "brackets in their names"},
		{"one/[a]/x.go", "one/a/x.go", ""},
		{`one/\[a\]/x.go`, "one/[a]/x.go", ""},
		{"app/[id]/none", "", ""},
		{"app/[id]/old.log", "", "1 ignored file"},
		{"**/[id]/old.log", "", "1 ignored file"},
		{"**/*.@(go|txt)", "", "@(go|txt) is no choice here"},
		{"**/(tab)/*", "app/[[...opt]]/(tab)/page.tsx", ""},
	} {
		for name, e := range newEngines(t, Config{}) {
			if name != walking {
				settle(t, e, root)
			}
			r, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: tt.pattern})
			if err != nil {
				t.Errorf("%s: %s: %v", name, tt.pattern, err)
				continue
			}
			notes := strings.Join(r.Notes, " ")
			if got := strings.TrimSuffix(r.Text, "\n"); got != tt.want || (tt.note == "") != (notes == "") ||
				!strings.Contains(notes, tt.note) {
				t.Errorf("%s: %s: got %q %q, want %q %q", name, tt.pattern, got, notes, tt.want, tt.note)
			}
		}
	}
}

// TestGlobLookAlike: names that look like those that match are found where none matches.
func TestGlobLookAlike(t *testing.T) {
	const shot, plain = "Screenshot 2026-01-02 at 3.04.05\u202fPM.png", "a\u00a0b/plain.txt"
	korean, german := norm.NFD.String("한국어.md"), norm.NFD.String("Übung/é.md")
	root := writeTree(t, map[string]string{
		shot: "", plain: "", korean: "", german: "", "d\u2019été.txt": "", "one a.txt": "", "one\u00a0a.txt": "",
		"zero\u200b x.md": "",
	})
	for _, tt := range []struct{ pattern, want string }{
		{"*3.04.05 PM.png", shot},
		{"**/a b/*", plain},
		{"a b/*.txt", plain},
		{"한국어.*", korean},
		{norm.NFC.String("Übung/*"), german},
		{"**/" + norm.NFC.String("é.md"), german},
		{"d'*.txt", "d\u2019été.txt"},
		{"one a.txt", "one a.txt"},
		{"zero x.md", "zero\u200b x.md"},
		{"none *", ""},
	} {
		for name, e := range newEngines(t, Config{}) {
			if name != walking {
				settle(t, e, root)
			}
			r, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: tt.pattern})
			if err != nil || strings.TrimSuffix(r.Text, "\n") != tt.want {
				t.Errorf("%s: %s: got %+v, %v, want %q", name, tt.pattern, r, err, tt.want)
				continue
			}
			exact := tt.want == "" || tt.pattern == tt.want
			if noted := strings.Contains(strings.Join(r.Notes, " "), "look the same"); noted == exact {
				t.Errorf("%s: %s: notes %q", name, tt.pattern, r.Notes)
			}
		}
	}
}

func TestGlobErrors(t *testing.T) {
	root := writeTree(t, nil)
	for _, tt := range []struct {
		pattern string
		want    error
		text    string
	}{
		{"[", glob.ErrClass, "at character 1"}, {"a/[b", glob.ErrClass, "at character 3"}, {"x[b-a]", glob.ErrRange, "at character 2"}, {"{a", glob.ErrUnclosed, "at character 1"},
	} {
		_, err := quiet(Config{}).Glob(context.Background(),
			GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: tt.pattern})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q", tt.pattern, err, tt.text)
		}
	}
}
