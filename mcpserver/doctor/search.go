package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// settleTime is how long a look at a root waits for its list of files, which is made in the background.
const settleTime = 2 * time.Second

// search says what is kept of each root for searches, once that is made ready.
func (s *Subject) search(ctx context.Context) []Finding {
	s.Warm()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var all []Finding
	for _, root := range s.Policy.Roots() {
		all = append(all, searchFinding(root, s.settled(ctx, root)))
	}
	return all
}

// settled waits until what is kept of a root is ready, unless nothing is, or ctx is done.
func (s *Subject) settled(ctx context.Context, root string) builtin.SearchStats {
	const between = 20 * time.Millisecond
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		now := s.Box.SearchStats(root)
		if now.State == "ready" || now.State == "walking" {
			return now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now
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
