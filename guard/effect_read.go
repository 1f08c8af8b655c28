package guard

// Read is the reading of a file. Its rules are those of Read.
type Read struct{ Path Path }

// Judge implements [Effect].
func (e Read) Judge(j Judgment) { j.judge.file(e.Path, reading, "read ") }

// Permission implements [Effect].
func (Read) Permission() Permission { return ToRead }

// Record implements [Effect].
func (e Read) Record() (field, value string) { return "reads", e.Path.String() }

func (e Read) file() Path { return e.Path }
