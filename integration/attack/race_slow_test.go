//go:build slow && unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// raceCalls is how many calls are made against each swap. A swap takes some 20 µs and a call some 300, so that
// every call meets several.
const raceCalls = 150

// swap exchanges what stands at path, over and over, until stop is called: first one of the makers, then the
// next. Each makes its object at a temporary name.
func swap(t *testing.T, path string, makers ...func(string) error) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			next := fmt.Sprintf("%s.next%d", path, i%2)
			if err := makers[i%len(makers)](next); err != nil {
				t.Errorf("making what is swapped: %v", err)
				return
			}
			switch err := os.Rename(path, path+".old"); {
			case os.IsExist(err): // the host wrote into it while it was removed
				os.RemoveAll(path + ".old")
				continue
			case err != nil && !os.IsNotExist(err):
				t.Errorf("swapping: %v", err)
				return
			}
			_ = os.Rename(next, path) // one that the host made meanwhile stands in the way
			os.RemoveAll(path + ".old")
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

func linkTo(target string) func(string) error {
	return func(at string) error {
		os.RemoveAll(at)
		return os.Symlink(target, at)
	}
}

func dirWith(name, text string) func(string) error {
	return func(at string) error {
		os.RemoveAll(at)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(at, name), []byte(text), 0o644)
	}
}

func fileWith(text string) func(string) error {
	return func(at string) error {
		os.RemoveAll(at)
		return os.WriteFile(at, []byte(text), 0o644)
	}
}

// TestAttackRaces swaps files, directories and links under the tools while they run.
func TestAttackRaces(t *testing.T) {
	tests := []struct {
		name, path string
		makers     func(w *world) []func(string) error
		calls      [][2]string
	}{
		{
			"a directory becomes a link to outside", "race",
			func(w *world) []func(string) error {
				return []func(string) error{dirWith("outside.txt", "public\n"), linkTo("../outside")}
			},
			[][2]string{
				{"Read", `{"file_path":"race/outside.txt"}`},
				{"Grep", `{"pattern":"CANARY","path":"race","output_mode":"content"}`},
				{"Grep", `{"pattern":"CANARY","output_mode":"content","glob":"race/**"}`},
				{"Glob", `{"pattern":"*","path":"race"}`},
				{"Write", `{"file_path":"race/made.txt","content":"x"}`},
				{"Write", `{"file_path":"race/deep/er/made.txt","content":"x"}`},
				{"Edit", `{"file_path":"race/outside.txt","old_string":"CANARY","new_string":"x"}`},
				{"Edit", `{"file_path":"race/new.txt","old_string":"","new_string":"x"}`},
			},
		},
		{
			"a directory becomes a link to a denied one", "race",
			func(w *world) []func(string) error {
				return []func(string) error{dirWith("zebra9f3.key", "public\n"), linkTo("secrets")}
			},
			[][2]string{
				{"Read", `{"file_path":"race/zebra9f3.key"}`},
				{"Grep", `{"pattern":"CANARY","path":"race","output_mode":"content"}`},
				{"Edit", `{"file_path":"race/zebra9f3.key","old_string":"CANARY","new_string":"x"}`},
				{"Bash", `{"command":"for i in 1 2 3 4 5 6 7 8; do cat race/zebra9f3.key; done; true"}`},
				{"Bash", `{"command":"cd race; cat zebra9f3.key; true"}`},
			},
		},
		{
			"a file becomes a link to a denied one", "race.txt",
			func(w *world) []func(string) error {
				return []func(string) error{fileWith("public\n"), linkTo(".env"), linkTo("../outside/outside.txt"), linkTo("locked/a.txt")}
			},
			[][2]string{
				{"Read", `{"file_path":"race.txt"}`},
				{"Edit", `{"file_path":"race.txt","old_string":"public","new_string":"x"}`},
				{"Write", `{"file_path":"race.txt","content":"pwned\n"}`},
				{"Grep", `{"pattern":".","path":"race.txt","output_mode":"content"}`},
				{"Grep", `{"pattern":"CANARY","output_mode":"content"}`},
			},
		},
		{
			"a file becomes a hard link to a denied one", "race.txt",
			func(w *world) []func(string) error {
				hard := func(at string) error {
					os.Remove(at)
					return os.Link(filepath.Join(w.ws, ".env"), at)
				}
				return []func(string) error{fileWith("public\n"), hard}
			},
			[][2]string{
				{"Read", `{"file_path":"race.txt"}`},
				{"Edit", `{"file_path":"race.txt","old_string":"public","new_string":"x"}`},
				{"Write", `{"file_path":"race.txt","content":"pwned\n"}`},
				{"Grep", `{"pattern":".","path":"race.txt","output_mode":"content"}`},
				{"Grep", `{"pattern":"CANARY","output_mode":"content"}`},
				{"Grep", `{"pattern":"CANARY","glob":"race*","output_mode":"count","no_ignore":true}`},
			},
		},
		{
			"a file becomes a FIFO", "race.txt",
			func(w *world) []func(string) error {
				fifo := func(at string) error {
					os.Remove(at)
					return syscall.Mkfifo(at, 0o644)
				}
				return []func(string) error{fileWith("public\n"), fifo}
			},
			[][2]string{
				{"Read", `{"file_path":"race.txt"}`},
				{"Grep", `{"pattern":"public","path":"race.txt"}`},
				{"Edit", `{"file_path":"race.txt","old_string":"public","new_string":"public"}`},
			},
		},
	}
	held := host.Contained(t)
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			h := w.host(t, host.StdioModern, profileFlags(w, "kernel")...)
			stop := swap(t, filepath.Join(w.ws, tt.path), tt.makers(w)...)
			calls := raceCalls / len(tt.calls)
			for i := range calls {
				for j, call := range tt.calls {
					w.attack(t, h, attack{verb: "held", tool: call[0], args: call[1], place: fmt.Sprintf("try %d.%d", i, j)}, held)
				}
				if t.Failed() {
					break
				}
			}
			stop()
			w.end(t, h)
		})
	}
}
