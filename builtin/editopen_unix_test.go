//go:build unix

package builtin

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard"
)

// TestDirectoryGoneMeanwhile: a call that made a directory takes it away again when it fails, but from no other call that makes a file
// in it at the same time.
func TestDirectoryGoneMeanwhile(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := guard.New(guard.Config{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Policy: policy, Runtime: &Runtime{}}
	open := func(name string) (*target, error) {
		path, err := policy.Resolve(name)
		if err != nil {
			return nil, err
		}
		return openTarget(t.Context(), env, path, true)
	}
	for round := range 300 {
		dir := fmt.Sprintf("%d/dir/", round)
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				failing, err := open(dir + "none")
				if err != nil {
					t.Error(err)
					return
				}
				failing.close()
			})
		}
		calls.Go(func() {
			file, err := open(dir + "file")
			if err == nil {
				err = file.dir.WriteFile("file", nil, 0o644)
				file.close()
			}
			if err != nil {
				t.Error(err)
			}
		})
		calls.Wait()
	}
}
