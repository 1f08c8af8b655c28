// Package hostpreset knows the hosts that package managers and forges need, so that a person allows them together.
// Its Go API is not stable.
package hostpreset

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed presets.txt
var text string

// each calls f with each preset, in the order of their names, until f returns false.
func each(f func(name string, hosts []string) bool) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" && !f(fields[0], fields[1:]) {
			return
		}
	}
}

// Names returns the names of all presets, in order.
func Names() (names []string) {
	each(func(name string, _ []string) bool { names = append(names, name); return true })
	return names
}

// Hosts returns the hosts of a preset, or nil if there is no such preset.
func Hosts(preset string) (hosts []string) {
	each(func(name string, list []string) bool {
		if name == preset {
			hosts = list
		}
		return hosts == nil
	})
	return hosts
}

// With returns the first preset that contains a host in lower case and more hosts than that, or "".
func With(host string) (preset string) {
	each(func(name string, list []string) bool {
		if len(list) > 1 && slices.Contains(list, host) {
			preset = name
		}
		return preset == ""
	})
	return preset
}
