package guard

// Read reads a file. Its rules are those of Read.
type Read struct {
	Path Path
	// Range is the part that is read, for display: "lines 10-59". Empty means the whole file.
	Range string
}

// Judge implements [Effect].
func (e Read) Judge(j Judgment) { j.judge.file(e.Path, reading, "read ") }

// Permission implements [Effect].
func (Read) Permission() Permission { return ToRead }

// Record implements [Effect].
func (e Read) Record() (field, value string) { return "reads", e.Path.String() }

func (e Read) file() Path { return e.Path }
