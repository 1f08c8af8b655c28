package document

import (
	"regexp"
	"strings"
)

// escapes matches the control functions that programs write to a terminal (ECMA-48): control sequences such as
// colors, strings such as window titles, and two-character escapes. If a string has no end, only its start is
// matched. Package x/ansi could be used, but it takes 20 ms at the start of the program to build its tables.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// plain returns what a terminal would show at the end: without escapes and control characters, and with only the last
// state of a line that carriage returns overwrite, as progress bars do.
func plain(s string) string {
	s = escapes.ReplaceAllLiteralString(strings.ReplaceAll(s, "\r\n", "\n"), "")
	if strings.Contains(s, "\r") {
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			line = strings.TrimRight(line, "\r")
			lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
		}
		s = strings.Join(lines, "\n")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
