package gitrepo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Setting is one setting of a git configuration and its position.
type Setting struct {
	Key        string // "section.name" or "section.Subsection.name"; section and name in lower case
	Value      string
	Start, End int // its bytes, with the end of the line
}

// IsBool reports whether git takes a value for true or false.
func IsBool(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value))
}

// Parse reads a configuration as described in git-config(1), "Syntax".
// It is stricter than git: what it does not understand is an error, so that
// nothing is understood in two ways.
func Parse(text []byte) ([]Setting, error) {
	p := &parser{text: text}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		p.pos = 3
	}
	var list []Setting
	section := ""
	for p.skipBlank(); p.pos < len(text); p.skipBlank() {
		switch c := text[p.pos]; {
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			name, err := p.section()
			if err != nil {
				return nil, err
			}
			section = name
		case isAlpha(c) && section != "":
			s, err := p.setting(section)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		default:
			return nil, p.fail("a setting or a section is expected")
		}
	}
	return list, nil
}

type parser struct {
	text []byte
	pos  int
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("line %d: %s", 1+bytes.Count(p.text[:min(p.pos, len(p.text))], []byte("\n")), what)
}

func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return '\n'
}

func (p *parser) skipBlank() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n\v\f", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) skipLine() {
	if i := bytes.IndexByte(p.text[p.pos:], '\n'); i >= 0 {
		p.pos += i + 1
	} else {
		p.pos = len(p.text)
	}
}

// section reads [name], [name.sub] or [name "sub"].
func (p *parser) section() (string, error) {
	p.pos++ // [
	start := p.pos
	for isAlpha(p.peek()) || isDigit(p.peek()) || p.peek() == '-' || p.peek() == '.' {
		p.pos++
	}
	name := strings.ToLower(string(p.text[start:p.pos]))
	if name == "" {
		return "", p.fail("a section has no name")
	}
	if p.peek() == ']' {
		p.pos++
		return name, nil
	}
	for p.peek() == ' ' || p.peek() == '\t' {
		p.pos++
	}
	if p.peek() != '"' {
		return "", p.fail("a section's name is malformed")
	}
	p.pos++
	var sub strings.Builder
	for ; p.peek() != '"'; p.pos++ {
		if p.peek() == '\\' {
			p.pos++
		}
		if p.peek() == '\n' {
			return "", p.fail("a section's name does not end")
		}
		sub.WriteByte(p.peek())
	}
	p.pos++
	if p.peek() != ']' {
		return "", p.fail("a section's name is malformed")
	}
	p.pos++
	return name + "." + sub.String(), nil
}

// setting reads a name, and the value after an equal sign.
func (p *parser) setting(section string) (Setting, error) {
	name := p.pos
	s := Setting{Start: name}
	if line := bytes.TrimRight(p.text[:name], " \t"); len(line) > 0 && line[len(line)-1] == '\n' {
		s.Start = len(line) // with its indentation
	}
	for isAlpha(p.peek()) || isDigit(p.peek()) || p.peek() == '-' {
		p.pos++
	}
	s.Key = section + "." + strings.ToLower(string(p.text[name:p.pos]))
	for p.peek() == ' ' || p.peek() == '\t' || p.peek() == '\r' {
		p.pos++
	}
	var err error
	switch p.peek() {
	case '\n', '#', ';': // no value means true
		p.skipLine()
	case '=':
		p.pos++
		s.Value, err = p.value()
	default:
		err = p.fail("an equal sign is expected")
	}
	s.End = p.pos
	return s, err
}

// value reads to the end of the line, which a backslash can move, and past it.
func (p *parser) value() (string, error) {
	var v strings.Builder
	quoted := false
	for ; ; p.pos++ {
		switch c := p.peek(); {
		case c == '\n':
			if quoted {
				return "", p.fail("a quotation does not end")
			}
			p.pos = min(p.pos+1, len(p.text))
			return strings.TrimSpace(v.String()), nil
		case c == '\\':
			p.pos++
			if p.peek() == '\r' {
				p.pos++
			}
			e := strings.IndexByte("\n\"\\ntb", p.peek())
			if e < 0 || p.pos >= len(p.text) {
				return "", p.fail("a backslash stands before what it cannot")
			}
			v.WriteString([]string{"", `"`, `\`, "\n", "\t", "\b"}[e])
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			return strings.TrimSpace(v.String()), nil
		case c == 0:
			return "", p.fail("there is a NUL byte")
		default:
			v.WriteByte(c)
		}
	}
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
