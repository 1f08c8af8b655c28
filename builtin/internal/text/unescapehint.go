package text

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescaped lists how to read a text that was escaped once too often, or not in the way of the file. Each reason says
// how the file then differs.
var unescaped = []struct {
	read   func(string) string
	reason string
}{
	{strings.NewReplacer(`\n`, "\n", `\r\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", "\\`", "`", `\\`, `\`, `\$`, "$", `\/`, "/").Replace,
		`old_string is escaped once too often: the file has a newline, a tab or a quote where it has \n, \t or \"`},
	{html.UnescapeString, "old_string has &lt;, &amp; and the like where the file has the characters themselves"},
	{strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace, "the file has &lt;, &amp; and the like where old_string has the characters themselves"},
	{Unescaped, `old_string has \u00a0 and the like where the file has the characters themselves`},
	{encodeEscapes("%04x"), `the file has \u00a0 and the like where old_string has the characters themselves`},
	{encodeEscapes("%04X"), `the file has \u00A0 and the like where old_string has the characters themselves`},
}

// charEscape matches an escaped code point.
var charEscape = regexp.MustCompile(`\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))`)

// Unescaped replaces escaped code points, such as \u00a0, by their characters.
func Unescaped(s string) string {
	return charEscape.ReplaceAllStringFunc(s, func(escape string) string {
		n, err := strconv.ParseUint(strings.Trim(escape, `\uUx{}`), 16, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return escape
		}
		return string(rune(n))
	})
}

// encodeEscapes returns a function that replaces non-ASCII characters by JSON escapes.
func encodeEscapes(digits string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if r < 0x7f {
				b.WriteRune(r)
				continue
			}
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u`+digits, unit)
			}
		}
		return b.String()
	}
}

// diagnoseEscaped looks for old with another escaping in t. It returns nil if none is found.
func diagnoseEscaped(t *Text, old string) *NotFoundError {
	for _, as := range unescaped {
		meant := as.read(old)
		if meant == old || strings.TrimSpace(meant) == "" {
			continue
		}
		spans := exactSpans(t.str, meant)
		if len(spans) == 0 && t.eol != LF {
			spans = t.spansByEnding(meant)
		}
		if len(spans) == 0 {
			continue
		}
		at := spans[0]
		first := strings.Count(t.str[:at.Start], "\n")
		lines := t.str[strings.LastIndexByte(t.str[:at.Start], '\n')+1 : at.End]
		if rest, _, ok := strings.Cut(t.str[at.End:], "\n"); ok && !strings.HasSuffix(lines, "\n") {
			lines += rest
		}
		return escapedError(as.reason, first+1, splitLines(lines))
	}
	return nil
}

func escapedError(reason string, first int, lines []string) *NotFoundError {
	e := &NotFoundError{First: first, Last: first + len(lines) - 1, Reason: reason, Escaped: true}
	var b strings.Builder
	for i, line := range lines[:min(len(lines), maxRegionRows)] {
		shown := row{' ', strings.TrimSuffix(line, "\r"), first + i, -1}
		if !isPlain(shown.text) && LookAlike(shown.text) != shown.text {
			shown.mark = '+' // rows with this mark show invisible characters
		}
		shown.show(&b)
	}
	if more := len(lines) - maxRegionRows; more > 0 {
		fmt.Fprintf(&b, "       … %d more lines\n", more)
	}
	e.Region = b.String()
	return e
}
