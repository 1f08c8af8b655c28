package command

import "strings"

// Patches reports whether a command applies a patch, which says what it writes.
func (c Simple) Patches() bool {
	g, _ := gitCallOf(c)
	return oneOf(c.Name, "patch gpatch") || c.Name == "git" && oneOf(g.name, "apply am")
}

// PatchedNames returns the names that a patch gives to the files it writes: as they
// stand there, and without their first element, which programs strip as a rule.
func PatchedNames(patch string) (names []string) {
	for line := range strings.Lines(patch) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), `'"$ `) // the first one of a here-string
		name, ok := strings.CutPrefix(line, "+++ ")
		for _, start := range []string{"rename to ", "copy to ", "Index: "} {
			if !ok {
				name, ok = strings.CutPrefix(line, start)
			}
		}
		if !ok && strings.HasPrefix(line, "diff --git ") {
			_, name, ok = strings.Cut(line, " b/")
			name = "b/" + name
		}
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "\t")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if name == "" || name == "/dev/null" {
			continue
		}
		names = append(names, name)
		if _, rest, found := strings.Cut(name, "/"); found && rest != "" {
			names = append(names, rest)
		}
	}
	return names
}
