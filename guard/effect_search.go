package guard

// Search searches a directory. It is judged like a read of the directory; [Policy.Hidden] leaves
// out denied files in it.
type Search struct {
	Path Path
	// Pattern is what the search looks for, for display.
	Pattern string
}

// Judge implements [Effect].
func (e Search) Judge(j Judgment) { j.judge.file(e.Path, reading, "search ") }

// Permission implements [Effect].
func (Search) Permission() Permission { return ToRead }

// Record implements [Effect].
func (e Search) Record() (field, value string) { return "reads", e.Path.String() }

func (e Search) file() Path { return e.Path }
