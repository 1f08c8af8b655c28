package realpath

import "io/fs"

// Resolved is what stands where a name leads, zero for nothing.
type Resolved struct {
	Dir, Regular bool
	File         ID
	Names        uint64 // how many the file has, 0 when unknown
}

// An ID tells one file from another, whatever names it has. It is zero for nothing, and
// on Windows, which does not tell it cheaply: hard links are not recognised there.
type ID struct{ Device, Inode uint64 }

// foundBy is what a description tells; info may be nil.
func foundBy(info fs.FileInfo) Resolved {
	if info == nil {
		return Resolved{}
	}
	id, names := Identify(info)
	return Resolved{info.IsDir(), info.Mode().IsRegular(), id, names}
}

// unswapped finds out whether a hard link took the place of a file: what was judged is
// one file, and any other name could be put there.
func unswapped(was ID, opened fs.FileInfo) error {
	if id, names := Identify(opened); names > 1 && !opened.IsDir() && id != was {
		return ErrSwapped
	}
	return nil
}
