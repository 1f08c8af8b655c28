package document

import (
	"regexp"
	"strings"
)

// escapes matches what programs write to command a terminal (ECMA-48): control
// sequences such as colors, strings such as window titles, and two-character
// escapes. Of a string without an end only the start is matched. The package
// x/ansi would do as well, but builds tables when the program starts, for 20 ms.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// plain returns what a terminal would still show of text: escapes and control
// characters are gone, and of a line that carriage returns draw over again and
// again, as progress bars do, the last state is left.
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
