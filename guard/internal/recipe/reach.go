package recipe

// reach visits names, and those that a visit returns in turn, each once.
func reach(names []string, visit func(name string) (calls []string)) {
	known := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		if names = names[1:]; !known[name] {
			known[name] = true
			names = append(names, visit(name)...)
		}
	}
}
