package guard

// Write is the writing of a file. Its rules are those of Edit.
type Write struct{ Path Path }

// Judge implements [Effect].
func (e Write) Judge(j Judgment) { j.judge.file(e.Path, writing, "write ") }

// Permission implements [Effect].
func (Write) Permission() Permission { return ToWrite }

// Record implements [Effect].
func (e Write) Record() (field, value string) { return "writes", e.Path.String() }

func (e Write) file() Path { return e.Path }
