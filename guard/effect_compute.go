package guard

// Compute is a call that reads, changes and runs nothing: it only computes an answer from its
// arguments.
type Compute struct{}

// Judge implements [Effect].
func (Compute) Judge(j Judgment) {
	j.judge.add(Part{What: "compute", Action: Allow, Source: builtIn, Reason: "It touches nothing."})
}

// Permission implements [Effect].
func (Compute) Permission() Permission { return ToRead }

// Record implements [Effect].
func (Compute) Record() (field, value string) { return "", "" }
