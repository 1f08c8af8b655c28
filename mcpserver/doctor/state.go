package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"toolhost/builtin"
	"toolhost/mcpserver/internal/statedir"
	"toolhost/resultstore"
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
		return []Finding{{LevelWarn, "state", fmt.Sprintf("%s cannot be used: %v. Long results are not kept, changes cannot be undone", dir, err), "name another with --state-dir"}}
	}
	parts := []string{
		fmt.Sprintf("results %s, at most %s a caller", mebibytes(statedir.Size(filepath.Join(dir, "results"))), mebibytes(resultstore.DefaultQuota)),
		fmt.Sprintf("history %s, at most %s a caller", mebibytes(statedir.Size(filepath.Join(dir, "history"))), mebibytes(builtin.HistoryQuota)),
	}
	text := fmt.Sprintf("%s holds %s: %s", dir, mebibytes(statedir.Size(dir)), strings.Join(parts, "; "))
	return []Finding{{LevelOK, "state", text, ""}, s.audit()}
}

func (s *Subject) audit() Finding {
	if s.Audit == nil {
		return Finding{LevelWarn, "audit", "calls are not recorded", "make the state directory writable, or name a file with --audit-log"}
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
		f.Level, f.Remedy = LevelWarn, "make its directory writable, or let another program rotate it and set --audit-max-size 0"
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
