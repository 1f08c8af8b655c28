package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/statedir"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// A HookFailure is the last failure of a hook in the sandbox.
type HookFailure struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	Error   string    `json:"error"`
}

const (
	// hookFile is the file of the state directory that holds failures of hooks.
	hookFile = "hooks.json"
	// hookFailures is how many failures are kept, and hookAge for how long.
	hookFailures = 20
	hookAge      = 7 * 24 * time.Hour
	maxHookFile  = 1 << 20
)

// NoteHook keeps the failure of a hook in the sandbox, of which the doctor reports the last.
func NoteHook(state string, h settings.Hook, failure error) error {
	file := filepath.Join(state, hookFile)
	return privatefile.Locked(file+".lock", func() error {
		all, err := readHooks(file)
		if err != nil && !errors.Is(err, statedir.ErrDamaged) { // a damaged file is replaced
			return err
		}
		all = slices.DeleteFunc(all,
			func(f HookFailure) bool { return f.Command == h.Command || time.Since(f.Time) > hookAge })
		all = append(all, HookFailure{time.Now().UTC(), h.Command, audit.Clip(failure.Error())})
		return statedir.Save(file, all[max(0, len(all)-hookFailures):])
	})
}

func readHooks(file string) (all []HookFailure, err error) {
	if err = statedir.Load(file, maxHookFile, &all); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// hooks says which hooks failed in the sandbox, and how a person can run them outside of it.
func (s *Subject) hooks() (findings []Finding) {
	failed, err := readHooks(filepath.Join(s.StateDir, hookFile))
	if err != nil || s.StateDir == "" {
		return nil // a damaged file is replaced at the next failure
	}
	for _, groups := range s.Settings.Current().Hooks {
		for _, group := range groups {
			for _, h := range group.Hooks {
				at := slices.IndexFunc(failed, func(f HookFailure) bool { return f.Command == h.Command })
				if at < 0 || h.Uncontained || time.Since(failed[at].Time) > hookAge {
					continue
				}
				text := fmt.Sprintf("the hook %q failed in the sandbox on %s: %s", audit.Clip(h.Command),
					failed[at].Time.Format(time.DateOnly), failed[at].Error)
				do := "give it"
				if kind := group.Source.Kind; kind == settings.Project || kind == settings.Local {
					do = "move it to your user settings with"
				}
				remedy := fmt.Sprintf(`if the sandbox is why, %s "contained": false (now in %s): then it runs with your rights`, do,
					group.Source.Where())
				findings = append(findings, Finding{LevelWarn, "hooks", text, remedy})
			}
		}
	}
	return findings
}
