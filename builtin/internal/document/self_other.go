//go:build !linux

package document

import "os"

func ownProgram() (string, error) { return os.Executable() }
