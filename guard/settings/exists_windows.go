package settings

import "os"

// exists is os.Stat without a FileInfo.
func exists(path string) error {
	_, err := os.Stat(path)
	return err
}
