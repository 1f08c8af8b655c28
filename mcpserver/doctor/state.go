package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/resultstore"
)

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// state looks at the state directory, what is in it, and the audit log.
func (s *Subject) state() []Finding {
	dir := s.StateDir
	err := s.Unkept
	if err == nil {
		err = writable(dir)
	}
	if err != nil {
		return []Finding{{LevelWarn, "state", fmt.Sprintf("%s cannot be used: %v. Long results are not kept, changes cannot "+
			"be undone", dir, err), "name another with --state-dir"}}
	}
	held, damage := s.history()
	size := func(name string) string { return mebibytes(privatefile.Size(filepath.Join(dir, name))) }
	return slices.Concat([]Finding{
		{LevelOK, "state", fmt.Sprintf("%s, %s", dir, size("")), ""},
		{LevelOK, "results", fmt.Sprintf("%s, at most %s a caller", size("results"), mebibytes(resultstore.DefaultQuota)), ""},
		{LevelOK, "history", fmt.Sprintf("%s%s, %s", size("history"), held, builtin.HistoryBounds(s.Roots)), ""},
	}, damage, s.keys(), []Finding{s.audit()})
}

// mostHolders is how many callers are named whose changes the history holds.
const mostHolders = 5

// history says whose changes the history holds, and what of it is damaged.
func (s *Subject) history() (held string, damage []Finding) {
	all, err := s.Box.Holdings()
	if err != nil {
		damage = append(damage, Finding{LevelWarn, "history", fmt.Sprintf("it cannot be read: %v", err),
			"move it away to begin another"})
	}
	var holders []string
	for _, h := range all {
		if h.Bytes > 0 && len(holders) < mostHolders {
			holders = append(holders, fmt.Sprintf("%s %s", cmp.Or(h.Principal, "unknown"), mebibytes(h.Bytes)))
		}
		if h.Damaged {
			damage = append(damage, Finding{LevelWarn, "history", fmt.Sprintf("the index of the changes of %s is damaged; "+
				"what its copy has is used", cmp.Or(h.Principal, "a caller")), "nothing: a host that runs sets aside what cannot " +
				"be read"})
		}
		if h.Aside != "" {
			damage = append(damage, Finding{LevelWarn, "history", "it was damaged; what could not be read is in " +
				h.Aside, "look at it, and delete it"})
		}
	}
	if len(holders) > 0 {
		held = fmt.Sprintf(" (%s)", strings.Join(holders, ", "))
	}
	return held, damage
}

// keys says which secrets of the state directory are damaged.
func (s *Subject) keys() (all []Finding) {
	if _, err := privatefile.Secret(s.StateDir, "secret"); err != nil {
		all = append(all, Finding{LevelWarn, "secret", fmt.Sprintf("session handles end with each host: %v", err),
			"delete the file"})
	}
	return all
}

func (s *Subject) audit() Finding {
	if s.Audit == nil {
		return Finding{LevelWarn, "audit", "calls are not recorded",
			"make the state directory writable, or name a file with --audit-log"}
	}
	path := s.Audit.Path()
	if err := s.Audit.Ready(); err != nil {
		return Finding{LevelFail, "audit", err.Error(), "make the file writable, or name another with --audit-log"}
	}
	f := Finding{LevelOK, "audit", path, ""}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return f // a device or a pipe has no size
	}
	f.Text += ", " + mebibytes(info.Size())
	if s.AuditMaxSize == 0 {
		f.Text += ", never rotated"
		return f
	}
	f.Text += fmt.Sprintf(", rotated at %s, %d earlier files are kept", mebibytes(s.AuditMaxSize), s.AuditKeep)
	if err := writable(filepath.Dir(path)); err != nil {
		f.Level, f.Remedy = LevelWarn, "make its directory writable, or let another program rotate it and set "+
			"--audit-max-size 0"
		f.Text += fmt.Sprintf("; but it cannot be rotated: %v", err)
	}
	return f
}

// writable tries whether files can be made in a directory.
func writable(dir string) error {
	probe, err := os.MkdirTemp(dir, ".toolhost-*")
	if err == nil {
		err = os.Remove(probe)
	}
	return err
}
