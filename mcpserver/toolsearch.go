package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/toolhost/toolhost/builtin"
)

// A searchMode says whether clients list the tools of other servers, or search for them: see [Config.ToolSearch].
type searchMode string

// The modes. The empty one is searchAuto.
const (
	searchOn   searchMode = "on"
	searchOff  searchMode = "off"
	searchAuto searchMode = "auto"
)

// The bounds up to which the tools of other servers are listed in the mode searchAuto: about 10,000 tokens.
const (
	maxListedBytes = 35_000
	maxListedTools = 40
)

// checkToolSearch returns an error for a value of [Config.ToolSearch] that is not one.
func checkToolSearch(value string) error {
	if value != "" && !slices.Contains([]searchMode{searchOn, searchOff, searchAuto}, searchMode(value)) {
		return fmt.Errorf("--tool-search: expected on, off or auto, got %q", value)
	}
	return nil
}

// needed reports whether tools are searched for and not listed.
func (m searchMode) needed(foreign []*builtin.Def) bool {
	if m == searchOn || m == searchOff {
		return m == searchOn
	}
	size := 0
	for _, d := range foreign {
		size += len(d.Name) + len(d.Doc) + len(d.RawSchema)
	}
	return size > maxListedBytes || len(foreign) > maxListedTools
}

// setForeign replaces the tools of other servers, and notifies the clients whose list that changes.
func (h *Host) setForeign(f foreignSet) error {
	if err := h.tools.replace(f); err != nil {
		return err
	}
	h.policies.mu.Lock()
	defer h.policies.mu.Unlock()
	h.policies.noteList(h.policies.last(LocalPrincipal).policy)
	return nil
}

// maxNear is the longest name, in bytes, for which similar ones are looked for.
const maxNear = 128

// nearest returns the names, at most n, that are similar to one which no tool has, the most similar first.
func (s *snapshot) nearest(name string, n int, visible func(*builtin.Def) bool) (near []string) {
	if len(name) > maxNear {
		return nil
	}
	distances := map[string]int{}
	for _, d := range s.all {
		far := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(d.Name))
		if far <= 1+len(name)/3 && visible(d) {
			near, distances[d.Name] = append(near, d.Name), far
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distances[a] - distances[b] })
	return near[:min(n, len(near))]
}
