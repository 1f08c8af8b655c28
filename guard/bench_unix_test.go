//go:build unix

package guard

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// manyRules makes n rules of all kinds and forms.
func manyRules(n int) *settings.Settings {
	s := &settings.Settings{DefaultMode: settings.ModeAcceptEdits,
		Sandbox: settings.Sandbox{AutoAllowBashIfSandboxed: true}}
	forms := []string{
		"Bash(tool%d run *)", "Bash(tool%d:*)", "Bash(tool%d x --y)", "Bash(git tool%d * --force)", "Bash(tool%d -rf *)",
		"Read(.env%d)", "Read(*.key%d)", "Read(dir%d/**)", "Edit(src/a%d/*.gen.go)", "Read(//etc/x%d)",
	}
	for i := range n {
		e := settings.Entry{Text: fmt.Sprintf(forms[i%len(forms)], i), File: "settings.json", Line: i + 1}
		switch i / len(forms) % 3 {
		case 0:
			s.Deny = append(s.Deny, e)
		case 1:
			s.Ask = append(s.Ask, e)
		case 2:
			s.Allow = append(s.Allow, e)
		}
	}
	return s
}

// BenchmarkJudge: 10,000 rules at most 100 µs a call.
func BenchmarkJudge(b *testing.B) {
	_, ws := workspace(b)
	for _, n := range []int{10, 1000, 10_000} {
		p := policy(b, ws, manyRules(n), contained)
		dir, file := resolve(b, p, "."), resolve(b, p, "src/main.go")
		for _, in := range []Intent{
			{Tool: "Read", Effects: []Effect{Read{Path: file}}},
			{Tool: "Edit", Effects: []Effect{Write{Path: file}}},
			{Tool: "Bash", Effects: []Effect{Exec{Text: "git status", Dir: dir}}},
			{Tool: "Bash", Effects: []Effect{Exec{Text: "cd src && go build ./... && go test -run X ./... 2>&1 | grep -v ok | tail -20", Dir: dir}}},
		} {
			name := in.Tool
			if c := in.Command(); c != nil && len(c.Text) > 20 {
				name = "BashPipeline"
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if v := p.Judge(in); v.Action != Allow {
						b.Fatal(v.Error())
					}
				}
			})
		}
	}
}

// BenchmarkHidden: at most 1 µs a file.
func BenchmarkHidden(b *testing.B) {
	_, ws := workspace(b)
	path := filepath.Join(ws, "internal/search/walk/walk_linux.go")
	for _, n := range []int{0, 10, 1000, 10_000} {
		p := policy(b, ws, manyRules(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if p.Hidden(path, false) {
					b.Fatal("hidden")
				}
			}
		})
	}
}

// BenchmarkNew: a few milliseconds for what people have.
func BenchmarkNew(b *testing.B) {
	_, ws := workspace(b)
	for _, n := range []int{10, 100, 10_000} {
		set := manyRules(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				policy(b, ws, set)
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	_, ws := workspace(b)
	p := policy(b, ws, nil)
	b.Run("resolve", func(b *testing.B) {
		for b.Loop() {
			resolve(b, p, "src/main.go")
		}
	})
	path := resolve(b, p, "src/main.go")
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			f, err := path.Open()
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}
