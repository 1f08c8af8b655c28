package mcpserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toolhost/builtin"
	"toolhost/resultstore"
)

// settleTime is how long a look at a root waits for its list of files, which is made in the background.
const settleTime = 2 * time.Second

// examineSearch says what is kept of each root for searches, once that is made ready.
func (h *Host) examineSearch(ctx context.Context) []Finding {
	h.Warm(LocalPrincipal)
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var all []Finding
	for _, root := range h.policy(LocalPrincipal).Roots() {
		all = append(all, searchFinding(root, h.settled(ctx, root)))
	}
	return all
}

// settled waits until what is kept of a root is ready, unless nothing is, or ctx is done.
func (h *Host) settled(ctx context.Context, root string) builtin.SearchStats {
	const between = 20 * time.Millisecond
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		s := h.box.SearchStats(root)
		if s.State == "ready" || s.State == "walking" {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s
		}
	}
}

func searchFinding(root string, s builtin.SearchStats) Finding {
	f := Finding{Level: LevelOK, About: "search", Text: root + ": " + s.State}
	switch s.State {
	case "walking":
		f.Text += ", nothing is kept of it yet"
	case "listing":
		f.Text += ", the files are being listed; until then each search walks the tree"
	default:
		f.Text += fmt.Sprintf(", %d files in %d directories, index %s (%s saved)", s.Files, s.Directories, mebibytes(s.Index), mebibytes(s.Persisted))
	}
	if blind := s.Directories - s.Watches; blind > 0 && s.State == "ready" {
		f.Text += fmt.Sprintf("; the system tells of no changes in %d directories, which are looked at in each search", blind)
		f.Level, f.Remedy = LevelWarn, "raise fs.inotify.max_user_watches, unless the file system tells of no changes at all"
	}
	if s.Unsaved != "" {
		f.Text += "; the index could not be saved: " + s.Unsaved
		f.Level, f.Remedy = LevelWarn, "make room in the state directory, or set search.persist to false"
	}
	return f
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// examineState looks at the state directory, what is in it, and the audit log.
func (h *Host) examineState() []Finding {
	dir := h.cfg.StateDir
	err := h.unkept
	if err == nil {
		err = writable(dir)
	}
	if err != nil {
		return []Finding{{LevelWarn, "state", fmt.Sprintf("%s cannot be used: %v. Long results are not kept, changes cannot be undone", dir, err), "name another with --state-dir"}}
	}
	parts := []string{
		fmt.Sprintf("results %s, at most %s a caller", mebibytes(sizeOf(filepath.Join(dir, "results"))), mebibytes(resultstore.DefaultQuota)),
		fmt.Sprintf("history %s, at most %s a caller", mebibytes(sizeOf(filepath.Join(dir, "history"))), mebibytes(builtin.HistoryQuota)),
	}
	text := fmt.Sprintf("%s holds %s: %s", dir, mebibytes(sizeOf(dir)), strings.Join(parts, "; "))
	return []Finding{{LevelOK, "state", text, ""}, h.examineAudit()}
}

func (h *Host) examineAudit() Finding {
	if h.audit == nil {
		return Finding{LevelWarn, "audit", "calls are not recorded", "make the state directory writable, or name a file with --audit-log"}
	}
	path := h.audit.Path()
	if err := h.audit.Ready(); err != nil {
		return Finding{LevelFail, "audit", err.Error(), "make the file writable, or name another with --audit-log"}
	}
	f := Finding{LevelOK, "audit", path, ""}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return f // a device or a pipe has no size
	}
	f.Text += ", " + mebibytes(info.Size())
	if h.cfg.AuditMaxSize == 0 {
		f.Text += ", never rotated"
		return f
	}
	f.Text += fmt.Sprintf(", rotated at %s, %d earlier files are kept", mebibytes(h.cfg.AuditMaxSize), h.cfg.AuditKeep)
	if err := writable(filepath.Dir(path)); err != nil {
		f.Level, f.Remedy = LevelWarn, "make its directory writable, or let another program rotate it and set --audit-max-size 0"
		f.Text += fmt.Sprintf("; but it cannot be rotated: %v", err)
	}
	return f
}

// writable tries whether files can be made in a directory.
func writable(dir string) error {
	probe, err := os.MkdirTemp(dir, ".doctor-*")
	if err == nil {
		err = os.Remove(probe)
	}
	return err
}
