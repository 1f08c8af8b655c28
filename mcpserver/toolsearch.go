package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// A searchMode says whether clients list the tools of other servers or search for them: see [Config.ToolSearch].
type searchMode string

// The modes. The empty one is searchAuto.
const (
	searchOn   searchMode = "on"
	searchOff  searchMode = "off"
	searchAuto searchMode = "auto"
)

// Limits up to which the tools of other servers are listed in the mode searchAuto: about 10,000 tokens.
const (
	maxListedBytes = 35_000
	maxListedTools = 40
	// maxUnasked is how many servers may be unknown, such as at the first start, before the list counts as too long.
	// Eleven servers took 24,000 bytes each. A client would have read a list that is too long before it becomes short.
	maxUnasked = 4
)

// checkToolSearch returns an error for an invalid value of [Config.ToolSearch].
func checkToolSearch(value string) error {
	if value != "" && !slices.Contains([]searchMode{searchOn, searchOff, searchAuto}, searchMode(value)) {
		return fmt.Errorf("tool search: expected on, off or auto, got %q", value)
	}
	return nil
}

// needed reports whether tools are searched for instead of listed. long says that the known tools are too long for a
// list.
func (m searchMode) needed(f foreignSet, long bool) bool {
	if m == searchOn || m == searchOff {
		return m == searchOn
	}
	unknown := 0
	for _, s := range f.Servers {
		if s.Unknown {
			unknown++
		}
	}
	return unknown > maxUnasked || long
}

// long reports whether the known definitions are too long for a list.
func (f foreignSet) long() bool {
	size := 0
	for _, d := range f.Tools {
		size += definitionSize(d)
	}
	return size > maxListedBytes || len(f.Tools) > maxListedTools
}

// Limits of the tools that are listed where others are searched for: about 3,000 tokens.
const (
	maxLoadedTools = 20
	maxLoadedBytes = 10_500
)

// alwaysLoaded returns the tools that are listed although others are searched for, in the order of their names, up to
// the limits.
func alwaysLoaded(foreign []*builtin.Def) map[*builtin.Def]bool {
	loaded, size := map[*builtin.Def]bool{}, 0
	for _, d := range foreign {
		if n := definitionSize(d); d.AlwaysLoad && len(loaded) < maxLoadedTools && size+n <= maxLoadedBytes {
			loaded[d] = true
			size += n
		}
	}
	return loaded
}

// definitionSize estimates how many bytes a tool takes on a list.
func definitionSize(d *builtin.Def) int { return len(d.Name) + len(d.Doc) + len(d.RawSchema) }

// setForeign replaces the tools of other servers, and notifies the clients with a changed list. The error names the
// tools that are left out.
func (h *Host) setForeign(f foreignSet) error {
	err := h.tools.replace(f)
	tell := func() {
		h.policies.mu.Lock()
		defer h.policies.mu.Unlock()
		h.policies.noteList(h.policies.last(LocalPrincipal).policy)
	}
	if f.Configured {
		tell()
	} else {
		h.lull.then(tell)
	}
	return err
}

// maxNear is the longest name, in bytes, for which similar names are searched.
const maxNear = 128

func distance(a, b string) int { return levenshtein.ComputeDistance(a, b) }

const toolSearchName = "ToolSearch"

// How many tools a search shows.
const (
	defaultFound = 5
	mostFound    = 20
)

type toolSearchInput struct {
	Query      string `json:"query" jsonschema:"what the tool should do, in words; +word: the name of the tool or its server contains it; select:NAME,NAME: exactly these"`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"how many tools to show (default 5)"`
}

// toolSearchTool searches the tools of t.
func toolSearchTool(t *toolset) (*builtin.Def, error) {
	return builtin.Define(builtin.Tool[toolSearchInput]{
		Name: toolSearchName, Title: "Find tools", Doc: toolSearchDoc,
		Hints: builtin.Hints{ReadOnly: true, Closed: true}, Permission: guard.ToRead, MaxResult: maxFound,
		SkipQueue: true,
		Refine: func(s *jsonschema.Schema) {
			s.Properties["max_results"].Minimum, s.Properties["max_results"].Maximum = jsonschema.Ptr(1.0),
				jsonschema.Ptr(float64(mostFound))
		},
		ConcurrencySafe: func(toolSearchInput) bool { return true },
		Plan: func(_ context.Context, env *builtin.Env, in toolSearchInput) (builtin.Plan, error) {
			q, err := openQuery(in.Query)
			if err != nil {
				return builtin.Plan{}, err
			}
			q.most = cmp.Or(in.MaxResults, defaultFound)
			a := toolAnswer{snapshot: t.now(), visible: env.Visible, room: maxFound}
			if most := env.ClientLimits.Of(false); most > 0 {
				a.room = min(a.room, most)
			}
			return builtin.Plan{
				Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
				Run:    func(context.Context) (builtin.Result, error) { return builtin.Result{Text: a.answer(q)}, nil },
			}, nil
		},
	})
}

// A toolQuery is a parsed query of ToolSearch.
type toolQuery struct {
	text     string   // the words for ranking
	required []string // words that names must contain, in lower case
	selected []string // names to select; the other fields are then empty
	most     int
}

func openQuery(text string) (q toolQuery, err error) {
	if names, ok := strings.CutPrefix(strings.TrimSpace(text), "select:"); ok {
		for _, name := range strings.FieldsFunc(names, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }) {
			if !slices.Contains(q.selected, name) {
				q.selected = append(q.selected, name)
			}
		}
		if len(q.selected) == 0 {
			return q, errors.New("query: expected names after select:, got none; use select:mcp__SERVER__TOOL, with commas " +
				"between names")
		}
		return q, nil
	}
	q.text = text
	for _, word := range strings.Fields(text) {
		if part, ok := strings.CutPrefix(word, "+"); ok && strings.Trim(part, "+") != "" {
			q.required = append(q.required, strings.ToLower(part))
		}
	}
	if len(q.required) == 0 &&
		!strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
		return q, fmt.Errorf("query: expected words, got %q: say what the tool should do, such as \"create an issue\"",
			clipped(text))
	}
	return q, nil
}
