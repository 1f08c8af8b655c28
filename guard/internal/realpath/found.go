package realpath

import "io/fs"

// Resolved describes the file that a name leads to. It is zero if there is none.
type Resolved struct {
	Dir, Regular bool
	File         ID
	Names        uint64 // how many the file has, 0 when unknown
}

// An ID tells one file from another, whatever names it has. It is zero if there is no file, and on Windows, where it
// is not cheap to get: hard links are not recognised there.
type ID struct{ Device, Inode uint64 }

// foundBy returns what info says of a file; info may be nil.
func foundBy(info fs.FileInfo) Resolved {
	if info == nil {
		return Resolved{}
	}
	id, names := Identify(info)
	return Resolved{info.IsDir(), info.Mode().IsRegular(), id, names}
}

// unswapped returns ErrSwapped if a hard link to another file took the place of the one that was judged: such a link
// can give any file this name.
func unswapped(was ID, opened fs.FileInfo) error {
	if id, names := Identify(opened); names > 1 && !opened.IsDir() && id != was {
		return ErrSwapped
	}
	return nil
}
