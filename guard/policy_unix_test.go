//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestParallel uses one policy from many goroutines, as the server does.
func TestParallel(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, rules(ws, "deny Read(.env)\ndeny Read(secrets/*)\ndeny Bash(rm *)"), contained)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			q := p.For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
			dir := resolve(t, q, ".")
			for range 50 {
				if v := q.Judge(Intent{Tool: "Read", Reads: []Path{resolve(t, q, "hard")}}); v.Action != Deny {
					t.Error("a hard link of a denied file is allowed")
				}
				if v := q.Judge(Intent{Tool: "Bash", Command: &Command{"ls && rm x", dir}}); v.Action != Deny {
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

// TestOpenByElement takes the way of systems that cannot refuse links in one
// step.
func TestOpenByElement(t *testing.T) {
	dir := realTemp(t)
	tree(t, dir, "a/b/f", "a/link -> b", "a/flink -> b/f")
	tests := []struct {
		name string
		flag int
		want error
	}{
		{"a/b/f", unix.O_RDONLY, nil},
		{"a/b", dirFlags, nil},
		{"a/b/f", bareFlags, nil},
		{"a/link/f", unix.O_RDONLY, ErrSwapped},
		{"a/link", bareFlags, ErrSwapped},
		{"a/flink", bareFlags, ErrSwapped},
		{"a/flink", unix.O_RDONLY, ErrSwapped},
		{"a/none/f", unix.O_RDONLY, syscall.ENOENT},
		{"a/b/f/g", unix.O_RDONLY, syscall.ENOTDIR},
	}
	for _, tt := range tests {
		fd, err := openByElement(filepath.Join(dir, tt.name), tt.flag)
		if err == nil {
			unix.Close(fd)
		}
		if !is(err, tt.want) {
			t.Errorf("openByElement(%s) = %v, want %v", tt.name, err, tt.want)
		}
	}
	fd, err := openByElement("/", dirFlags)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

func is(err, want error) bool {
	if pe, ok := err.(*os.PathError); ok {
		err = pe.Err
	}
	return err == want
}

// TestNewNameOfADeniedFile makes a hard link after the links were looked for.
func TestNewNameOfADeniedFile(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, rules(ws, "deny Read(.env)"))
	read := func(name string) Action {
		return p.Judge(Intent{Tool: "Read", Reads: []Path{resolve(t, p, name)}}).Action
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
