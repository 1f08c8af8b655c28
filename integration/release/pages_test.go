package release

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// docs is where the pages for users are.
const docs = "../../cmd/toolhost/docs/"

// productSource is the text of all Go files that are no tests.
var productSource = func() func(t *testing.T) string {
	var once sync.Once
	var source strings.Builder
	return func(t *testing.T) string {
		once.Do(func() {
			for _, dir := range []string{"builtin", "cmd", "guard", "mcpserver", "readstate", "resultstore"} {
				host.Must(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ os.DirEntry, err error) error {
					if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
						return err
					}
					raw, err := os.ReadFile(path)
					source.Write(raw)
					return err
				}))
			}
		})
		return source.String()
	}
}()
