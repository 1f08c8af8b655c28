package guard

// Search is a search of a directory. It is judged like a read of the directory; what is denied
// in it is left out by [Policy.Hidden].
type Search struct {
	Path Path
	// Pattern is what is searched for, for people.
	Pattern string
}

// Judge implements [Effect].
func (e Search) Judge(j Judgment) { j.judge.file(e.Path, reading, "search ") }

// Permission implements [Effect].
func (Search) Permission() Permission { return ToRead }

// Record implements [Effect].
func (e Search) Record() (field, value string) { return "reads", e.Path.String() }

func (e Search) file() Path { return e.Path }
