//go:build !linux

package realpath

import (
	"bytes"
	"io/fs"
)

// Content reads a regular file faster than [OpenAs] where there is a way to. Here is none.
func Content(string, ID, *bytes.Buffer, int64) (info fs.FileInfo, ok bool, err error) {
	return nil, false, nil
}
