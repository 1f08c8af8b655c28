package pathname

import (
	"slices"
	"strings"
)

// A Place is a file or directory by the name it was given and by its real one, both
// as the system writes them.
type Place struct{ Given, Real string }

// Names returns the slashed names of the place.
func (p Place) Names() []string {
	if p.Given == p.Real || p.Real == "" {
		return []string{Slashed(p.Given)}
	}
	return []string{Slashed(p.Given), Slashed(p.Real)}
}

// Places are files and directories by all their names.
type Places struct {
	// Names are slashed, and Keys are the names in the form that Spelling compares.
	Names, Keys []string
	Spelling    Spelling
}

// PlacesOf returns places whose names are compared by their spelling. One that was
// given no name is left out.
func PlacesOf(s Spelling, list ...Place) Places {
	out := Places{Spelling: s}
	for _, p := range list {
		if p.Given == "" {
			continue
		}
		for _, name := range p.Names() {
			out.Names = append(out.Names, name)
			out.Keys = append(out.Keys, s.Of(name))
		}
	}
	return out
}

// Hold reports whether a slashed path is one of the places or below one, by any name.
func (ps *Places) Hold(path string) bool {
	if len(ps.Keys) == 0 {
		return false
	}
	path = ps.Spelling.Of(path)
	return slices.ContainsFunc(ps.Keys, func(key string) bool { return Within(path, key) })
}

// LieIn reports whether one of the places is a slashed path or below it.
func (ps *Places) LieIn(path string) bool {
	path = ps.Spelling.Of(path)
	return slices.ContainsFunc(ps.Keys, func(key string) bool { return Within(key, path) })
}

// LieBelow reports whether one of the places lies below a slashed path.
func (ps *Places) LieBelow(path string) bool {
	path = ps.Spelling.Of(path) + "/"
	return slices.ContainsFunc(ps.Keys, func(key string) bool { return strings.HasPrefix(key, path) })
}
