package sandbox

import (
	"fmt"
	"os"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// resolveFiles resolves files that exist.
func resolveFiles(files []File) (list []contract.Copy, err error) {
	for _, f := range files {
		t, err := place.Locate(f.Path)
		if place.Absent(err) {
			continue
		}
		if err != nil || t.Dir {
			return nil, fmt.Errorf("sandbox: %s cannot be replaced: it is not a file (%v)", f.Path, err)
		}
		info, err := os.Stat(t.Path)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %s cannot be replaced: %w", f.Path, err)
		}
		list = append(list, contract.Copy{Path: t.Path, Mode: uint32(info.Mode().Perm()) | 0o400, Content: f.Content})
	}
	return list, nil
}
