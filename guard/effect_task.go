package guard

import "github.com/toolhost/toolhost/guard/settings"

const ownTask = "It is a task of this caller."

// ReadTask is the reading of the output of a background task of the caller.
type ReadTask struct{ ID string }

// Judge implements [Effect].
func (ReadTask) Judge(j Judgment) {
	j.add(Part{What: "read a task", Action: Allow, Source: builtIn, Reason: ownTask})
}

// Permission implements [Effect].
func (ReadTask) Permission() Permission { return ToRead }

// Record implements [Effect].
func (ReadTask) Record() (field, value string) { return "", "" }

// StopTask is the ending of a background task of the caller.
type StopTask struct{ ID string }

// Judge implements [Effect].
func (StopTask) Judge(j Judgment) {
	if j.data.mode == settings.ModePlan {
		j.add(j.planPart("stop a task"))
		return
	}
	j.add(Part{What: "stop a task", Action: Allow, Source: builtIn, Reason: ownTask})
}

// Permission implements [Effect].
func (StopTask) Permission() Permission { return ToExec }

// Record implements [Effect].
func (StopTask) Record() (field, value string) { return "", "" }
