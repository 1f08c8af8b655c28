package audit

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clipped returns the record with texts and lists cut to the limits, as it is written.
func (r Record) Clipped() Record {
	for _, text := range []*string{&r.Principal, &r.Scope, &r.Tool, &r.Command, &r.Rule, &r.Source, &r.Summary,
		&r.Client, &r.ClientVersion, &r.Chain, &r.Error} {
		*text = Clip(*text)
	}
	r.Phases = slices.Clone(r.Phases[:min(len(r.Phases), maxPhases)])
	for i := range r.Phases {
		r.Phases[i].Note = Clip(r.Phases[i].Note)
	}
	r.Reads, r.Writes, r.Effects = clipAll(r.Reads), clipAll(r.Writes), clipAll(r.Effects)
	return r
}

func clipAll(paths []string) []string {
	var all []string
	for i, path := range paths {
		if i == maxPaths && len(paths) > maxPaths+1 { // naming one more path takes no more space than counting it
			return append(all, fmt.Sprintf("… and %d more", len(paths)-i))
		}
		all = append(all, Clip(path))
	}
	return all
}

// Clip cuts the middle out of a text longer than [maxText], between characters, and says how much.
func Clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	const end, mark = maxText / 4, 48 // what stays of the end, and the room for what is said
	head, tail := maxText-end-mark, len(s)-end
	for head > maxText-end-mark-utf8.UTFMax && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s)-end+utf8.UTFMax && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s…(%d bytes left out)…%s", s[:head], tail-head, s[tail:])
}

// usualLine is the initial size of a line, in bytes. It suffices for most records.
const usualLine = 512

// appendTo appends the record as a line of JSON, with the names in the tags of its fields.
func (r Record) appendTo(line []byte) []byte {
	line = append(line, `{"time":"`...)
	line = append(r.Time.AppendFormat(line, time.RFC3339Nano), '"')
	line = appendText(appendName(line, "principal"), r.Principal)
	line = appendText(appendName(line, "scope"), r.Scope)
	line = appendText(appendName(line, "tool"), r.Tool)
	line = appendTexts(line, "reads", r.Reads)
	line = appendTexts(line, "writes", r.Writes)
	line = appendTexts(line, "effects", r.Effects)
	line = appendSome(line, "command", r.Command)
	line = appendSome(appendSome(line, "server", r.Server), "upstream", r.Upstream)
	if line = appendSome(appendSome(line, "era", r.Era), "pin", r.Pin); r.Replayed {
		line = append(appendName(line, "replayed"), "true"...)
	}
	for _, f := range [...]struct{ name, text string }{
		{"verdict", r.Verdict}, {"rule", r.Rule}, {"source", r.Source}, {"answered", r.Answered}, {"question", r.Question}, {"event", r.Event}, {"chain", r.Chain},
		{"summary", r.Summary}, {"client", r.Client}, {"client_version", r.ClientVersion},
	} {
		line = appendSome(line, f.name, f.text)
	}
	line = appendPhases(line, r.Phases)
	line = appendMillis(appendName(line, "duration_ms"), r.Millis)
	line = strconv.AppendInt(appendName(line, "result_bytes"), int64(r.Bytes), 10)
	return append(appendSome(line, "error", r.Error), '}')
}

func appendPhases(line []byte, all []Phase) []byte {
	if len(all) == 0 {
		return line
	}
	line = append(appendName(line, "phases"), '[')
	for i, p := range all {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(p.Time.AppendFormat(append(line, `{"time":"`...), time.RFC3339Nano), '"')
		line = appendText(appendName(line, "what"), p.What)
		line = append(appendSome(appendSome(line, "by", p.By), "note", p.Note), '}')
	}
	return append(line, ']')
}

// appendSome appends a member unless its text is empty.
func appendSome(line []byte, name, text string) []byte {
	if text == "" {
		return line
	}
	return appendText(appendName(line, name), text)
}

// appendMillis appends a time in milliseconds. Whole microseconds take a fast path.
func appendMillis(line []byte, millis float64) []byte {
	micros := int64(millis*1000 + 0.5)
	if micros < 0 || float64(micros)/1000 != millis {
		return strconv.AppendFloat(line, millis, 'f', -1, 64)
	}
	line = strconv.AppendInt(line, micros/1000, 10)
	if rest := micros % 1000; rest > 0 {
		for line = append(line, '.'); rest > 0; rest = rest % 100 * 10 {
			line = append(line, byte('0'+rest/100))
		}
	}
	return line
}

func appendName(line []byte, name string) []byte {
	return append(append(append(line, `,"`...), name...), `":`...)
}

func appendTexts(line []byte, name string, all []string) []byte {
	if len(all) == 0 {
		return line
	}
	line = append(appendName(line, name), '[')
	for i, text := range all {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendText(line, text)
	}
	return append(line, ']')
}

// appendText appends a text as a JSON string. It escapes what JSON requires and what a terminal that shows the log
// would obey: control characters, directional marks and zero-width characters. Invalid UTF-8 becomes U+FFFD.
func appendText(line []byte, text string) []byte {
	line = append(line, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			line = append(line, '\\', byte(r))
		case r == '\n':
			line = append(line, '\\', 'n')
		case r == '\t':
			line = append(line, '\\', 't')
		case r >= ' ' && !hidden(r):
			line = utf8.AppendRune(line, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			line = fmt.Appendf(line, `\u%04x\u%04x`, high, low)
		default:
			line = fmt.Appendf(line, `\u%04x`, r)
		}
	}
	return append(line, '"')
}

// hidden reports whether a character is invisible.
func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
