package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// A hookRun is how the command of a hook runs. The zero hookRun is contained.
type hookRun struct {
	// Outside says that the command runs with the rights of the host, because nothing that a tool or a command can write
	// affects it. Otherwise it runs in a sandbox.
	Outside bool
	// Why is the reason why it does not run outside.
	Why string
	// Chosen says that the settings alone decided: the hook's answer can be relied on.
	Chosen bool
	// Held are the files of the workspace that the hook runs. Tools ask before they write them, and commands cannot write
	// them.
	Held []string
}

// hookPlan is the plan of a policy for all hooks.
type hookPlan struct {
	runs   map[string]hookRun
	files  pathname.Places
	looked []lookedAt // the files that the plan depends on
}

// lookedAt is the state of a file when the plan was made.
type lookedAt struct {
	path string
	info fs.FileInfo // nil: it was absent
}

// same reports whether the file is unchanged.
func (l lookedAt) same() bool {
	info, err := os.Stat(l.path)
	if err != nil || l.info == nil {
		return err != nil && l.info == nil
	}
	return os.SameFile(info, l.info) && info.Size() == l.info.Size() && info.ModTime().Equal(l.info.ModTime())
}

// AbsentFiles records the programs of hooks that did not exist when a policy was made. A command can create such a program
// while it runs; so a program that appears later is not trusted before the next start. All policies of a host share it.
type AbsentFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

// late reports whether a file did not exist before. absent says that it does not exist now.
func (a *AbsentFiles) late(name string, absent bool) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if absent {
		if a.names == nil {
			a.names = map[string]bool{}
		}
		a.names[name] = true
	}
	return a.names[name]
}

// hookKey identifies a hook by what it runs.
func hookKey(h settings.Hook) string {
	return fmt.Sprintf("%q %q %t %q", h.Command, h.Args, h.Args == nil, h.Shell)
}

// planHooks determines how each hook runs, and which files hooks and the command lines of the host run.
func (k *policyData) planHooks(set *settings.Settings, s pathname.Spelling) hookPlan {
	plan := hookPlan{runs: map[string]hookRun{}}
	var held []pathname.Place
	for _, c := range k.hostCommands {
		held = append(held, slices.DeleteFunc(c.files(k), func(p pathname.Place) bool { return k.originals.Hold(pathname.Slashed(p.Real)) })...)
	}
	var search, dropped string
	if len(set.Hooks) > 0 {
		kept, skipped := hostprogram.Split(os.Getenv("PATH"))
		search, dropped = kept, strings.Join(skipped, string(filepath.ListSeparator))
	}
	for _, groups := range set.Hooks {
		for _, group := range groups {
			for _, h := range group.Hooks {
				if h.Type != "command" || plan.runs[hookKey(h)].Why != "" || plan.runs[hookKey(h)].Outside {
					continue
				}
				p := &hookPlanner{k: k, search: search, dropped: dropped}
				p.hook(h)
				held = append(held, p.held...)
				plan.looked = append(plan.looked, p.looked...)
				plan.runs[hookKey(h)] = p.run(set.HooksContained)
			}
		}
	}
	plan.files = pathname.PlacesOf(s, held...)
	return plan
}

// run returns the result, as the settings want it.
func (p *hookPlanner) run(contained string) hookRun {
	run := hookRun{Outside: p.why == "", Why: p.why}
	for _, place := range p.held {
		run.Held = append(run.Held, place.Real)
	}
	slices.Sort(run.Held)
	run.Held = slices.Compact(run.Held)
	switch contained {
	case settings.ContainedAlways:
		run.Chosen = run.Outside
		run.Outside, run.Why = false, `"hooks.contained" is "always"`
	case settings.ContainedNever:
		run.Outside, run.Why, run.Chosen = true, "", true
	}
	return run
}

// HookRun returns how the command of a hook must run, as far as the settings and files decide it.
func (p *Policy) HookRun(h settings.Hook) hookRun {
	return p.data.hooks.runs[hookKey(h)]
}

// Current reports whether the files that hooks run are unchanged since the policy was made. Otherwise the host makes a new
// policy: a person may have changed a script of a hook.
func (p *Policy) Current() bool {
	return !slices.ContainsFunc(p.data.hooks.looked, func(l lookedAt) bool { return !l.same() })
}

// look records a file that the plan depends on.
func (p *hookPlanner) look(path string) {
	info, err := os.Stat(path)
	if err != nil {
		info = nil // absent, or not accessible
	}
	p.looked = append(p.looked, lookedAt{path, info})
}
