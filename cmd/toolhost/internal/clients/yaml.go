package clients

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// yamlFormat is YAML in block style. The parser reports positions, and whole lines are inserted or removed: writing
// the tree would lose the style of the file.
type yamlFormat struct{}

func (yamlFormat) decode(body []byte) (map[string]any, error) {
	t, err := parseYAML(body)
	if err != nil {
		return nil, err
	}
	if t.root == nil {
		return map[string]any{}, nil
	}
	var v any
	if err := yaml.Unmarshal(plainBreaks(body), &v); err != nil {
		return nil, yamlError(body, err)
	}
	m, ok := normal(v).(map[string]any)
	if !ok {
		return nil, at(body, 0, "the file does not hold a mapping")
	}
	return m, nil
}

func yamlError(body []byte, err error) error {
	var where yaml.Error
	if errors.As(err, &where) {
		if token := where.GetToken(); token != nil && token.Position != nil {
			return &positionError{token.Position.Line, token.Position.Column, where.GetMessage()}
		}
		return at(body, len(body), "%s", where.GetMessage())
	}
	return at(body, len(body), "%s", err.Error())
}

// A yamlTree is a parsed body, with its lines, including their breaks.
type yamlTree struct {
	lines []string
	root  *ast.MappingNode // nil if there are only comments
}

// plainBreaks returns a body with each CRLF replaced by a newline, because the parser counts a comment before a CRLF
// as two lines. Line and column numbers do not change.
func plainBreaks(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")) }

func parseYAML(body []byte) (yamlTree, error) {
	t := yamlTree{lines: strings.SplitAfter(string(body), "\n")}
	if n := len(t.lines); t.lines[n-1] == "" {
		t.lines = t.lines[:n-1]
	}
	file, err := parser.ParseBytes(plainBreaks(body), 0)
	if err != nil {
		return t, yamlError(body, err)
	}
	for _, doc := range file.Docs {
		switch node := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingNode:
			if t.root != nil {
				return t, at(body, 0, "the file holds several documents")
			}
			t.root = node
		default:
			return t, at(body, 0, "the file does not hold a mapping")
		}
	}
	return t, nil
}

// A yamlPair is a key of a mapping in block style.
type yamlPair struct {
	value ast.Node
	// line is the line of the key, counted from 0; indent its column; end the line after the value.
	line, indent, end int
}

// pair returns the pair with a key; ok is false if there is none.
func (t yamlTree) pair(m *ast.MappingNode, key string) (yamlPair, bool, error) {
	if m == nil {
		return yamlPair{}, false, nil
	}
	for _, v := range m.Values {
		token := v.Key.GetToken()
		if token.Value != key {
			continue
		}
		if m.IsFlowStyle {
			return yamlPair{}, false, byHand("%q stands in a mapping in braces", key)
		}
		p := yamlPair{value: v.Value, line: token.Position.Line - 1, indent: token.Position.Column - 1}
		if p.line >= len(t.lines) || !strings.HasPrefix(strings.TrimLeft(t.lines[p.line], " "),
			strings.TrimSpace(token.Origin)) {
			return yamlPair{}, false, byHand("%q does not begin its line", key)
		}
		p.end = t.blockEnd(p.line, p.indent)
		return p, true, nil
	}
	return yamlPair{}, false, nil
}

// blockEnd returns the line after the block of the key on a line: it has the lines that are indented further than the
// key. Blank lines and less indented comments at its end belong to what follows.
func (t yamlTree) blockEnd(line, indent int) int {
	end := line + 1
	for i := end; i < len(t.lines); i++ {
		text := strings.TrimLeft(t.lines[i], " ")
		depth := len(t.lines[i]) - len(text)
		switch {
		case strings.TrimSpace(text) == "":
		case depth > indent:
			end = i + 1
		case !strings.HasPrefix(text, "#"):
			return end
		}
	}
	return end
}

// child returns the mapping that is the value of a key, or nil if the value is empty or {}.
func (p yamlPair) child(name string) (*ast.MappingNode, error) {
	switch v := p.value.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle {
			return v, nil
		}
		if len(v.Values) == 0 {
			return nil, nil
		}
		return nil, byHand("%s is written in braces", name)
	case *ast.NullNode:
		return nil, nil
	}
	return nil, byHand("%s is not a mapping in block style", name)
}

// step returns the indentation of the first nested mapping in the file, or 2 if there is none.
func (t yamlTree) step() int {
	if t.root != nil {
		for _, v := range t.root.Values {
			if m, ok := v.Value.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
				if n := m.Values[0].Key.GetToken().Position.Column - v.Key.GetToken().Position.Column; n > 0 {
					return n
				}
			}
		}
	}
	return 2
}

func (f yamlFormat) set(body []byte, path []string, value any) ([]byte, error) {
	t, err := parseYAML(body)
	if err != nil {
		return nil, err
	}
	if t.root != nil && t.root.IsFlowStyle {
		return nil, byHand("the file is written in braces")
	}
	m, indent, place := t.root, 0, len(t.lines)
	if m != nil && len(m.Values) > 0 {
		indent = m.Values[0].Key.GetToken().Position.Column - 1
	}
	for i, key := range path {
		p, ok, err := t.pair(m, key)
		if err != nil {
			return nil, err
		}
		last := i == len(path)-1
		switch {
		case !ok:
			for j := len(path) - 1; j > i; j-- {
				value = object{{key: path[j], value: value}}
			}
			return t.splice(place, place, yamlLines(key, value, indent, t.step())), nil
		case last:
			return t.splice(p.line, p.end, yamlLines(key, value, p.indent, t.step())), nil
		}
		if m, err = p.child(key); err != nil {
			return nil, err
		}
		indent, place = p.indent+t.step(), p.end
		if m == nil {
			if err := t.open(p.line); err != nil {
				return nil, err
			}
		} else {
			indent = m.Values[0].Key.GetToken().Position.Column - 1
		}
	}
	return nil, byHand("there is nothing to set")
}

// emptyValue matches a line with a key whose value is empty or {}: the key, the blanks after it, the value, and the
// rest.
var emptyValue = regexp.MustCompile(`^( *[^#{}\s][^#{}]*:)([ \t]*)(\{[ \t]*\})?([ \t]*(?:#.*)?\r?\n?)$`)

// open removes the empty value of a key, so that lines can follow below the key.
func (t yamlTree) open(line int) error {
	m := emptyValue.FindStringSubmatch(t.lines[line])
	if m == nil {
		return byHand("line %d has a value", line+1)
	}
	if m[3] == "" {
		m[4] = m[2] + m[4]
	}
	t.lines[line] = m[1] + sections(m[4])
	return nil
}

// sections returns the rest of a line with a space before a comment, because YAML requires one.
func sections(rest string) string {
	if strings.HasPrefix(rest, "#") {
		return " " + rest
	}
	return rest
}

// splice replaces the lines from start to end by text.
func (t yamlTree) splice(start, end int, text string) []byte {
	head, tail := strings.Join(t.lines[:start], ""), strings.Join(t.lines[end:], "")
	if head != "" && text != "" && !strings.HasSuffix(head, "\n") {
		text = "\n" + text
	}
	return apply([]byte(head+tail), splice{len(head), len(head), text})
}

func yamlLines(key string, value any, indent, step int) string {
	pad := strings.Repeat(" ", indent)
	obj, ok := value.(object)
	switch {
	case !ok:
		return pad + yamlKey(key) + ": " + scalar(value) + "\n"
	case len(obj) == 0:
		return pad + yamlKey(key) + ": {}\n"
	}
	var b strings.Builder
	b.WriteString(pad + yamlKey(key) + ":\n")
	for _, f := range obj {
		b.WriteString(yamlLines(f.key, f.value, indent+step, step))
	}
	return b.String()
}

// plainKey matches a key that needs no quotes and has no other meaning in YAML.
var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]+$`)

func yamlKey(key string) string {
	switch strings.ToLower(key) {
	case "null", "true", "false", "yes", "no", "on", "off":
		return quote(key)
	}
	if plainKey.MatchString(key) {
		return key
	}
	return quote(key)
}

func (yamlFormat) remove(body []byte, path []string) ([]byte, error) {
	t, err := parseYAML(body)
	if err != nil {
		return nil, err
	}
	m := t.root
	var above yamlPair
	for i, key := range path {
		p, ok, err := t.pair(m, key)
		if err != nil || !ok {
			return nil, err
		}
		if i == len(path)-1 {
			if len(m.Values) == 1 && i > 0 { // a key without a value would become null
				line := emptyValue.FindStringSubmatch(t.lines[above.line])
				if line == nil {
					return nil, byHand("%q would have no value left", path[i-1])
				}
				t.lines[above.line] = line[1] + " {}" + sections(line[2]+line[4])
			}
			return t.splice(p.line, p.end, ""), nil
		}
		if m, err = p.child(key); err != nil {
			return nil, err
		}
		above = p
	}
	return body, nil
}
