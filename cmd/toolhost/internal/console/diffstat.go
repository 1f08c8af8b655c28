package console

import (
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// Limits of a call whose lines are counted for the list (files, and bytes in them), and of the counts that are kept.
const (
	maxCountedFiles = 50
	maxCountedBytes = 1 << 20
	maxCounts       = 1000
)

// lineCounts keeps how many lines calls have changed, by their IDs. These numbers never change.
type lineCounts struct {
	mu  sync.Mutex
	all map[string]lineCount
}

// of returns the line counts of a call that has ended.
func (l *lineCounts) of(c builtin.ChangedCall, operator mcpserver.Operator) lineCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lines, ok := l.all[c.ID]; ok {
		return lines
	}
	if c.State != stateDone || len(c.Files) > maxCountedFiles || sizes(c.Files) > maxCountedBytes {
		return lineCount{}
	}
	_, diff, err := operator.ShowChange(c.ID)
	if err != nil { // the page of the call shows the error
		return lineCount{}
	}
	if l.all == nil || len(l.all) == maxCounts {
		l.all = map[string]lineCount{}
	}
	lines := diffLines(diff)
	if !slices.ContainsFunc(lines,
		func(l line) bool { return strings.HasSuffix(l.Text, " of the diff are not shown)") && l.Kind == "" }) {
		l.all[c.ID] = countLines(lines)
	}
	return l.all[c.ID]
}

func sizes(files []builtin.Change) (bytes int64) {
	for _, f := range files {
		bytes += f.Before.Size + f.After.Size
	}
	return bytes
}
