package settings

import "os"

// exists is os.Stat without a description of what is there.
func exists(path string) error {
	_, err := os.Stat(path)
	return err
}
