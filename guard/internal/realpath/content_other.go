//go:build !linux

package realpath

import (
	"bytes"
	"io/fs"
)

// Content reads a regular file faster than [OpenAs], if the system has a way to. This one has none.
func Content(string, ID, *bytes.Buffer, int64) (info fs.FileInfo, ok bool, err error) {
	return nil, false, nil
}
