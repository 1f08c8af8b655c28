//go:build !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// canSpare says that this system has no files without names.
const canSpare = false

func openNameless(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func giveName(*os.File, *os.File, string) error { return errors.ErrUnsupported }

func linksOf(fs.FileInfo) uint64 { return 0 }
