package ignore

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// Overrides are the globs of a query, as of ripgrep's --glob: gitignore lines
// with the meaning of `!` turned around. They go before all ignore rules.
type Overrides struct {
	rules   *Rules
	chooses bool // there is a glob without `!`: files that match no glob are left out
}

// NewOverrides compiles the globs. It returns nil if there are none.
func NewOverrides(globs []string) (*Overrides, error) {
	if len(globs) == 0 {
		return nil, nil
	}
	o := &Overrides{rules: &Rules{}}
	for _, g := range globs {
		r, err := parseLine(g, glob.Options{})
		if err != nil {
			return nil, fmt.Errorf("glob %q: %w", g, err)
		}
		if r.glob == nil {
			continue
		}
		o.rules.add(r)
		o.chooses = o.chooses || !r.negated
	}
	return o, nil
}

// Match judges an entry by its path, or by several paths relative to different directories. If a `!` glob matches one
// of the paths, the entry is left out. Otherwise, if another glob matches one, the entry is kept, whatever ignore
// files say.
func (o *Overrides) Match(dir bool, paths ...string) Verdict {
	v := None
	for _, p := range paths {
		switch o.rules.Match(p, dir) {
		case Kept: // a `!` glob
			return Ignored
		case Ignored:
			v = Kept
		}
	}
	if v == None && o.chooses && !dir {
		return Ignored
	}
	return v
}

// MayContain reports whether a glob names something below the directory by a
// literal path, so that the directory must be entered even when it is ignored.
func (o *Overrides) MayContain(paths ...string) bool {
	for _, r := range o.rules.rules {
		into := r.glob.Dir() + "/"
		for _, p := range paths {
			if !r.negated && strings.HasPrefix(into, p+"/") {
				return true
			}
		}
	}
	return false
}
