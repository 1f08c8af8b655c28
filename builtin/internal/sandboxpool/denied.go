package sandboxpool

import "os"

// A coveredFile is a denied file as it was when it was covered.
type coveredFile struct {
	info os.FileInfo
	born int64 // when it was made, in nanoseconds; 0 where the system does not say
}

// lookAt examines a file, or a symbolic link itself.
func lookAt(path string) (*coveredFile, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	return &coveredFile{info, born(path)}, nil
}

// same reports whether f and other are one file. A new file often gets the number of one that was removed just
// before, but not its time of birth.
func (f *coveredFile) same(other *coveredFile) bool {
	return os.SameFile(f.info, other.info) && f.born == other.born
}
