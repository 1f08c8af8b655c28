package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/mcpserver"
)

// A line is one line of a text, with the way it is shown: as added, as removed, as the head of a hunk, or plain.
type line struct{ Kind, Text string }

// diffLines returns the lines of a text. If it contains a diff, the lines of the diff have their kinds.
func diffLines(text string) []line {
	var all []line
	rows := strings.Split(strings.TrimSuffix(mcpserver.Sanitize(text), "\n"), "\n")
	inDiff := false
	for i, row := range rows {
		if strings.HasPrefix(row, "--- ") && i+1 < len(rows) && strings.HasPrefix(rows[i+1], "+++ ") {
			inDiff = true
		}
		kind := ""
		if inDiff {
			kind = diffKind(row)
		}
		all = append(all, line{kind, row})
	}
	return all
}

func diffKind(row string) string {
	switch {
	case strings.HasPrefix(row, "--- "), strings.HasPrefix(row, "+++ "):
		return "file"
	case strings.HasPrefix(row, "@@"):
		return "hunk"
	case strings.HasPrefix(row, "+"):
		return "add"
	case strings.HasPrefix(row, "-"):
		return "del"
	}
	return ""
}

// hunkStart matches the head of a hunk: where it begins in the old and in the new file, and how many lines it has in
// the new one.
var hunkStart = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// numbered returns the lines of a unified diff, each with its number in the new file, or in the old one for a removed
// line. Only the first character of a line says what it is: a line of a file may look like the head of a diff.
func numbered(diff string) (all []line) {
	old, now, begun := 0, 0, false
	for row := range strings.Lines(diff) {
		row = strings.TrimSuffix(row, "\n")
		if m := hunkStart.FindStringSubmatch(row); m != nil {
			if begun {
				all = append(all, line{"hunk", "⋯"})
			}
			old, _ = strconv.Atoi(m[1])
			now, _ = strconv.Atoi(m[2])
			begun = true
			continue
		}
		mark := row[:min(1, len(row))]
		switch {
		case !begun && (strings.HasPrefix(row, "--- ") || strings.HasPrefix(row, "+++ ")):
		case begun && mark == "-":
			all = append(all, line{"del", fmt.Sprintf("%5d %s", old, row)})
			old++
		case begun && mark == "+":
			all = append(all, line{"add", fmt.Sprintf("%5d %s", now, row)})
			now++
		case begun && mark == " ":
			all = append(all, line{"", fmt.Sprintf("%5d %s", now, row)})
			old, now = old+1, now+1
		default: // a remark, such as that there is no newline at the end
			all = append(all, line{"hunk", row})
		}
	}
	return all
}

// inFile returns the new file with the removed lines of a diff, and with its added lines marked.
func inFile(file, diff []line) (all []line) {
	at, removed := 0, slices.ContainsFunc(diff, func(l line) bool { return l.Text == "+++ /dev/null" })
	if removed || len(diff) == 0 {
		return file
	}
	for _, l := range diff {
		switch l.Kind {
		case "file":
			continue
		case "hunk":
			m := hunkStart.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			start, _ := strconv.Atoi(m[2])
			if m[3] != "0" { // if the hunk has no lines in the new file, m[2] is the line before it
				start--
			}
			start = min(max(start, at), len(file))
			all, at = append(all, file[at:start]...), start
		case "del":
			all = append(all, line{l.Kind, l.Text[1:]})
		default:
			if at < len(file) && !strings.HasPrefix(l.Text, `\`) { // not "\ No newline at end of file"
				all = append(all, line{l.Kind, file[at].Text})
				at++
			}
		}
	}
	return append(all, file[min(at, len(file)):]...)
}

// A field is one argument of a call, as it is shown to the person who decides.
type field struct {
	Name  string
	Lines []line
	Cut   int // how many characters are not shown
}

// maxField is how many bytes of one argument are shown, and maxFields how many arguments.
const (
	maxField  = 64 << 10
	maxFields = 32
)

// fields returns the arguments of a call in their order. If one text replaces another, both are shown like a diff.
func fields(input json.RawMessage) []field {
	d := json.NewDecoder(bytes.NewReader(input))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return []field{{Name: "input", Lines: plain("", clip(string(input), maxField)),
			Cut: max(0, len(input)-maxField)}}
	}
	var all []field
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		if len(all) == maxFields {
			return append(all, field{Name: "…", Cut: len(input) - int(d.InputOffset())})
		}
		key := clip(fmt.Sprint(name), maxName)
		shown := clip(text, maxField)
		all = append(all, field{Name: key, Lines: plain(argumentKind(key), shown),
			Cut: utf8.RuneCountInString(text[len(shown):])})
	}
	return all
}

// argumentKind returns how an argument of Edit or Write is shown, if it is removed or added text.
func argumentKind(name string) string {
	switch name {
	case "old_string":
		return "del"
	case "new_string", "new_source", "content":
		return "add"
	}
	return ""
}

func plain(kind, text string) []line {
	var all []line
	for row := range strings.SplitSeq(strings.TrimSuffix(mcpserver.Sanitize(text), "\n"), "\n") {
		all = append(all, line{kind, row})
	}
	return all
}

// clip returns the beginning of s, at most most bytes long, without an incomplete character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}

// clock returns the time of day, with the date if it is more than 12 hours away. The script of the page converts it
// to the time zone of the browser.
func clock(t time.Time) string {
	switch now := time.Now(); {
	case t.IsZero():
		return ""
	case now.Sub(t) < 12*time.Hour && t.Sub(now) < 12*time.Hour:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// duration returns a duration as people read it.
func duration(millis float64) string {
	switch d := time.Duration(millis * float64(time.Millisecond)); {
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", millis)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
