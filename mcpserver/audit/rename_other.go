//go:build !linux

package audit

func renameNew(from, to string) error { return renameChecked(from, to) }
