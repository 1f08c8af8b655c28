//go:build !linux

package baseline

import "os"

// statOf returns the stamp of what is at path itself, without following a link.
func statOf(path string) (stamp, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	at := st.ModTime().UnixNano()
	return stamp{Mode: st.Mode(), Size: st.Size(), Changed: at, Modified: at}, nil
}
