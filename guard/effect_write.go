package guard

// Write writes a file. Its rules are those of Edit.
type Write struct {
	Path Path
	// Removed and Added are the text that the write removes and adds, for display. Note is a
	// further remark.
	Removed, Added, Note string
	// Preview returns the unified diff of the change, or "" if it is not known before the change is made. It is called
	// when a person is asked; nil: there is none.
	Preview func() string
}

// Judge implements [Effect].
func (e Write) Judge(j Judgment) { j.judge.file(e.Path, writing, "write ") }

// Permission implements [Effect].
func (Write) Permission() Permission { return ToWrite }

// Record implements [Effect].
func (e Write) Record() (field, value string) { return "writes", e.Path.String() }

func (e Write) file() Path { return e.Path }
