//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestParallel uses one policy from many goroutines, as the server does.
func TestParallel(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)\ndeny Read(secrets/*)\ndeny Bash(rm *)"), contained)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			q := p.For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
			dir := resolve(t, q, ".")
			for range 50 {
				if v := q.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, q, "hard")}}}); v.Action != Deny {
					t.Error("a hard link of a denied file is allowed")
				}
				if v := q.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: "ls && rm x", Dir: dir}}}); v.Action != Deny {
					t.Error("a denied command is allowed")
				}
				q.Hiding()
				if !q.Hidden(filepath.Join(ws, ".env"), false) || q.Hidden(filepath.Join(ws, "README.md"), false) {
					t.Error("Hidden is wrong")
				}
			}
		})
	}
	calls.Wait()
}

// TestNewNameOfADeniedFile makes a hard link after the links were looked for.
func TestNewNameOfADeniedFile(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)"))
	read := func(name string) Action {
		return p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, p, name)}}}).Action
	}
	if read("two") != Allow || read("hard") != Deny {
		t.Fatal("the links that were there are judged wrong")
	}
	tree(t, ws, "sub/late = sub/.env")
	if read("sub/late") != Deny {
		t.Error("a link made after the first look is not noticed")
	}
	if err := os.Remove(filepath.Join(ws, "two")); err != nil {
		t.Fatal(err)
	}
	if read("README.md") != Allow {
		t.Error("a file that lost its other name is not allowed")
	}
}
