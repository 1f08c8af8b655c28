package guard

// StopTask stops a background task of the caller.
type StopTask struct{ ID string }

// Judge implements [Effect].
func (StopTask) Judge(j Judgment) {
	j.judge.add(Part{What: "stop a task", Action: Allow, Source: builtIn, Reason: ownTask})
}

// Permission implements [Effect].
func (StopTask) Permission() Permission { return ToExec }

// Record implements [Effect].
func (StopTask) Record() (field, value string) { return "", "" }
