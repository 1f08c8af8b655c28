package builtin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/text"
)

// An agentOutput is the structured output of an [agentTool].
type agentOutput struct {
	AgentID    string      `json:"agent_id"`
	TaskID     string      `json:"task_id,omitempty"` // of an agent that still runs
	Type       string      `json:"type"`
	Runner     string      `json:"runner"`
	Status     string      `json:"status"` // running, completed, failed or stopped
	Turns      int         `json:"turns"`
	Tokens     int         `json:"tokens,omitempty"`
	DurationMS int64       `json:"duration_ms"`
	Files      []agentFile `json:"files"`
	OutputPath string      `json:"output_path,omitempty"` // the transcript
	ExitCode   *int        `json:"exit_code,omitempty"`
}

// An agentFile is a file that an agent changed.
type agentFile struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// changed returns the files that the agent changed, with the changed lines of each.
func (r *agentRun) changed() (files []agentFile) {
	all, err := r.env.Runtime.history.List(ChangeFilter{Principal: agentPrincipal(r.id), Since: r.begun})
	if err != nil {
		return nil
	}
	index, seen := map[string]int{}, map[string]bool{}
	for _, c := range all {
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		changes, diffs, err := r.env.Runtime.history.Show(agentPrincipal(r.id), c.ID)
		if err != nil {
			continue
		}
		for i, change := range changes {
			if change.BeforeMode.IsDir() || change.AfterMode.IsDir() {
				continue
			}
			f := agentFile{Path: change.Path}
			if rel, ok := strings.CutPrefix(change.Path, r.place.Dir+string(os.PathSeparator)); ok {
				f.Path = rel
			}
			_, _ = fmt.Sscanf(plusMinus(diffs[i], true), "+%d -%d", &f.Added, &f.Removed)
			if at, known := index[change.Path]; known {
				files[at].Added += f.Added
				files[at].Removed += f.Removed
				continue
			}
			index[change.Path], files = len(files), append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b agentFile) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// agentPrincipal is the principal of an agent.
func agentPrincipal(id string) string { return agentChild{ID: id}.Principal() }

// structured returns the structured output.
func (r *agentRun) structured() agentOutput {
	r.mu.Lock()
	defer r.mu.Unlock()
	return agentOutput{
		AgentID: r.id, Type: r.def.Name, Runner: r.runner.Name, Turns: r.turns, Tokens: r.tokens,
		DurationMS: time.Since(r.begun).Milliseconds(),
		Files:      append([]agentFile{}, r.files...), OutputPath: r.path,
	}
}

// result returns the result of an agent that has ended.
func (r *agentRun) result() Result {
	out := r.structured()
	out.Status, out.ExitCode = "completed", &r.status.ExitCode
	answer := strings.TrimSpace(r.answer)
	head := ""
	switch {
	case r.cause != nil:
		out.Status, head = "stopped", fmt.Sprintf("The agent was ended: %v.", r.cause)
		if answer != "" {
			head += " Its last words:\n"
		}
	case r.failed:
		out.Status, head = "failed", "The agent failed. It said:\n"
		answer = firstRunes(answer, maxOwnWords)
	case answer == "" || !r.finished && r.status.ExitCode != 0:
		out.Status, head = "failed", fmt.Sprintf("The agent ended without an answer, with exit code %d.",
			r.status.ExitCode)
		if r.status.Signal != "" {
			head = fmt.Sprintf("The agent ended without an answer, by %s.", r.status.Signal)
		}
		if words := strings.TrimSpace(string(r.words)); words != "" || answer != "" {
			head += " It said:\n"
			answer = firstRunes(strings.TrimSpace(words+"\n"+answer), maxOwnWords)
		}
	}
	return Result{
		Text: head + quotedLines(answer) + "\n" + r.block(out), IsError: out.Status != "completed", Structured: out,
		Summary: fmt.Sprintf("%s: %s, %s", r.id, out.Status, count(out.Turns, "turn")), LastLine: lastLine(answer),
	}
}

// quotedLines returns the text of an agent with a mark before each line. Otherwise a line could look like one of this
// host, such as those of the block that describes the run.
func quotedLines(words string) string {
	words, _ = text.Visible(strings.ToValidUTF8(words, "\uFFFD"))
	if words = strings.Trim(words, "\n"); words == "" {
		return "\n"
	}
	var b strings.Builder
	for line := range strings.SplitSeq(words, "\n") {
		b.WriteString(strings.TrimRight("> "+line, " ") + "\n")
	}
	return b.String()
}

// block returns the part of a result that describes the run.
func (r *agentRun) block(out agentOutput) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Agent %s (%s, %s): %s, ", r.id, out.Type, out.Runner, count(out.Turns, "turn"))
	if out.Tokens > 0 {
		fmt.Fprintf(&b, "%d tokens, ", out.Tokens)
	}
	fmt.Fprintf(&b, "%s.", (time.Duration(out.DurationMS) * time.Millisecond).Round(100*time.Millisecond))
	if n := len(out.Files); n > 0 {
		var names []string
		for _, f := range out.Files[:min(n, maxChangedNames)] {
			names = append(names, fmt.Sprintf("%s +%d -%d", quoteOdd(f.Path), f.Added, f.Removed))
		}
		if more := n - maxChangedNames; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(&b, " Changed %s: %s.", count(n, "file"), strings.Join(names, ", "))
	}
	if r.path != "" {
		fmt.Fprintf(&b, " Transcript: %s.", r.path)
	}
	if len(r.runner.Resume) > 0 && r.session != "" {
		fmt.Fprintf(&b, " Continue it with resume: %q.", r.id)
	}
	b.WriteString("]\n")
	return b.String() + onLines(r.notes)
}

// firstRunes returns the first characters of a text.
func firstRunes(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n]) + "…"
	}
	return text
}
