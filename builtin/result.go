package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Result is the result of a tool before it is cut to the limits.
type Result struct {
	// Text is what the model reads.
	Text string
	// Images go with the text.
	Images []Image
	// Structured is for programs. It does not repeat the text. It may be nil.
	Structured any
	// IsError marks a call that has failed. The text says why and what to do next.
	IsError bool
	// Unread marks an error that is an [UnreadError].
	Unread bool
	// SavedPath is the path of the whole result if the tool has saved it and cut the text itself.
	SavedPath string
	// Summary is a line for logs, such as "+3 -1". LastLine is the last line of a task's output, for people.
	Summary, LastLine string
	// Served describes the response of another server: the era of its protocol, the hash of the tool's definition, whether
	// the request was sent twice, and the error code. It is for the audit log, and for clients that get an error.
	Served struct {
		Era, Pin string
		Replayed bool
		Code     int
	}
	// Passed is a prompt or resource of another server, in the types of the library, or the text if a hook has changed it.
	Passed any
	// Asks is set if the call ends with a question to a person.
	Asks *ExecAsked
}

// An Image is an image that models support.
type Image struct {
	Data []byte
	MIME string
}

const (
	// contextLines is how many unchanged lines a diff shows around a change.
	contextLines = 3
	// diffLines is how many lines of the diff of a completed change are shown. The caller knows the new text.
	diffLines = 40
)

// changeText returns the text for a change: what was done, what was kept or normalised, and the diff.
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

// plusMinus returns the number of lines that a diff adds and removes, such as "+3 -1", or "" if the diff is cut.
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

// notes returns the notes that are not empty.
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
