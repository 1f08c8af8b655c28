//go:build !linux && !darwin

package history

// isFull reports false: a full disk is not told from other errors here.
func isFull(error) bool { return false }

func freeOn(string) (free int64, ok bool) { return 0, false }

func sameDisk(string, string) bool { return false }
