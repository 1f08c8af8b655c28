package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Result is a tool's answer, not yet cut to size.
type Result struct {
	// Text is what the model reads.
	Text string
	// Images go with the text.
	Images []Image
	// Structured is for programs; it does not repeat the text. Nil: none.
	Structured any
	// IsError marks a call that did not do what was asked. The text says why and what to do next.
	IsError bool
	// SavedPath is the path of the whole result when the tool has already kept it and cut the text itself.
	SavedPath string
	// Summary is one line on what was done, such as "+3 -1", for logs; LastLine the last line of a task's output, for people.
	Summary, LastLine string
	// Served says how another server has answered: the era of its protocol, the hash of the tool's definition, whether it was asked
	// twice, and the code of its error. It is for the audit log, and for clients that get an error.
	Served struct {
		Era, Pin string
		Replayed bool
		Code     int
	}
	// Passed is what a client gets of a prompt or resource of another server, in the library's types; the text once a hook has changed it.
	Passed any
	// Asks is set when a person must be asked in the middle of the call, and is asked after it.
	Asks *ExecAsked
}

// An Image is a picture that a model can take.
type Image struct {
	Data []byte
	MIME string
}

const (
	// contextLines is how many unchanged lines a diff shows around a change.
	contextLines = 3
	// diffLines is how many lines of the diff of a change that was made are shown. The caller knows what it wrote.
	diffLines = 40
)

// changeText is the answer to a change: what happened, what was kept or normalised, and the diff, which says itself what it leaves out.
func changeText(head string, notes []string, diff string) string {
	var out strings.Builder
	out.WriteString(head)
	for _, note := range notes {
		out.WriteString("\nNote: " + note)
	}
	if diff != "" {
		out.WriteString("\n\n" + diff)
	}
	return out.String()
}

// plusMinus counts the lines that a diff adds and removes, as "+3 -1"; "" if the diff is cut.
func plusMinus(diff string, complete bool) string {
	if !complete {
		return ""
	}
	added, removed := 0, 0
	_, hunks, _ := strings.Cut(diff, "\n@@") // after the names of the files
	for line := range strings.Lines(hunks) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return fmt.Sprintf("+%d -%d", added, removed)
}

// notes is a list of the notes that say something.
func notes(all ...string) []string {
	return slices.DeleteFunc(all, func(note string) bool { return note == "" })
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return strconv.Itoa(n) + " " + what + "es"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// lineCount counts lines; an unfinished last one counts.
func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
