package guard

const ownTask = "It is a task of this caller."

// ReadTask reads the output of a background task of the caller.
type ReadTask struct{ ID string }

// Judge implements [Effect].
func (ReadTask) Judge(j Judgment) {
	j.judge.add(Part{What: "read a task", Action: Allow, Source: builtIn, Reason: ownTask})
}

// Permission implements [Effect].
func (ReadTask) Permission() Permission { return ToRead }

// Record implements [Effect].
func (ReadTask) Record() (field, value string) { return "", "" }
