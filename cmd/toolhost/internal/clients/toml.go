package clients

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML. A server is added as a table, [container.name], at the end of the file.
type tomlFormat struct{}

func (tomlFormat) decode(body []byte) (map[string]any, error) {
	m := map[string]any{}
	if err := toml.Unmarshal(body, &m); err != nil {
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			line, column := decode.Position()
			return nil, &positionError{line, column, strings.TrimPrefix(decode.Error(), "toml: ")}
		}
		return nil, err
	}
	normal(m)
	return m, nil
}

// A tomlLine is an expression, with the lines it is on: the header of a table, or a key and its value.
type tomlLine struct {
	kind unstable.Kind
	// path is the whole key, including that of its table.
	path []string
	// start and end are the bounds of the lines, from and to those of the part between the indentation and the comment.
	start, end, from, to int
}

func tomlLines(body []byte) ([]tomlLine, error) {
	var p unstable.Parser
	p.Reset(body)
	var lines []tomlLine
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		first := -1
		for it := e.Key(); it.Next(); {
			if first < 0 {
				first = int(it.Node().Raw.Offset)
			}
			key = append(key, string(it.Node().Data))
		}
		line := tomlLine{kind: e.Kind, path: key, start: lineStart(body, first), from: first, to: first}
		if e.Kind == unstable.KeyValue {
			line.path = append(slices.Clone(table), key...)
			line.from, line.to = int(e.Raw.Offset), int(e.Raw.Offset+e.Raw.Length)
			line.to -= len(body[line.from:line.to]) - len(bytes.TrimRight(body[line.from:line.to], " \t\r\n"))
		} else {
			table = key
		}
		line.end = lineEnd(body, line.to)
		lines = append(lines, line)
	}
	return lines, p.Error()
}

// below reports whether a key is path or is below it.
func (l tomlLine) below(path []string) bool {
	return len(l.path) >= len(path) && slices.Equal(l.path[:len(path)], path)
}

func (f tomlFormat) set(body []byte, path []string, value any) ([]byte, error) {
	lines, err := tomlLines(body)
	if err != nil {
		return nil, err
	}
	if entry, ok := value.(object); ok && len(path) == 2 {
		return f.appendTable(body, lines, path, entry)
	}
	table, key := path[:len(path)-1], path[len(path)-1]
	text := tomlKey(key) + " = " + tomlValue(value)
	header := -1
	for i, l := range lines {
		switch {
		case l.kind == unstable.Table && slices.Equal(l.path, table):
			header = i
		case header >= 0 && l.kind == unstable.KeyValue && slices.Equal(l.path, path):
			return apply(body, splice{l.from, l.to, text}), nil
		}
	}
	switch {
	case header < 0 && len(path) == 2:
		return f.appendTable(body, lines, table, object{{key: key, value: value}})
	case header < 0:
		return nil, byHand("%s is not a table of its own", strings.Join(table, "."))
	}
	last := header
	for last+1 < len(lines) && lines[last+1].kind == unstable.KeyValue {
		last++
	}
	indent := ""
	if last > header {
		indent = string(body[lines[last].start:lines[last].from])
	}
	if place := lines[last].end; place == len(body) && !bytes.HasSuffix(body, []byte("\n")) {
		return apply(body, splice{place, place, "\n" + indent + text}), nil
	}
	return apply(body, splice{lines[last].end, lines[last].end, indent + text + "\n"}), nil
}

func (tomlFormat) appendTable(body []byte, lines []tomlLine, path []string, entry object) ([]byte, error) {
	for _, l := range lines {
		if l.kind == unstable.KeyValue && l.path[0] == path[0] && tableOf(lines, l) == "" {
			return nil, byHand("%s is written without a table of its own", path[0])
		}
	}
	var b strings.Builder
	if len(body) > 0 {
		if !bytes.HasSuffix(body, []byte("\n")) {
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i] = tomlKey(key)
	}
	b.WriteString("[" + strings.Join(keys, ".") + "]\n")
	for _, f := range entry {
		b.WriteString(tomlKey(f.key) + " = " + tomlValue(f.value) + "\n")
	}
	return apply(body, splice{len(body), len(body), b.String()}), nil
}

// tableOf returns the name of the table that a key is in, or "" at the top of the file.
func tableOf(lines []tomlLine, key tomlLine) string {
	table := ""
	for _, l := range lines {
		switch {
		case l.start == key.start:
			return table
		case l.kind != unstable.KeyValue:
			table = strings.Join(l.path, ".")
		}
	}
	return table
}

func (tomlFormat) remove(body []byte, path []string) ([]byte, error) {
	lines, err := tomlLines(body)
	if err != nil {
		return nil, err
	}
	var cuts []splice
	for i := 0; i < len(lines); i++ {
		if !lines[i].below(path) {
			continue
		}
		run := i // adjacent expressions are removed with the comments between them
		for run+1 < len(lines) && lines[run+1].below(path) {
			run++
		}
		start := lines[i].start
		if lines[i].kind != unstable.KeyValue { // including the blank line before the table
			if before := bytes.TrimRight(body[:start], "\r\n"); bytes.Count(body[len(before):start], []byte("\n")) > 1 {
				start = lineStart(body, start-1)
			}
		}
		cuts = append(cuts, splice{start, lines[run].end, ""})
		i = run
	}
	return apply(body, cuts...), nil
}

func tomlKey(key string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if key != "" && strings.TrimFunc(key, bare) == "" {
		return key
	}
	return quote(key)
}

func tomlValue(v any) string {
	obj, ok := v.(object)
	if !ok {
		return scalar(v)
	}
	members := make([]string, len(obj))
	for i, f := range obj {
		members[i] = tomlKey(f.key) + " = " + tomlValue(f.value)
	}
	if len(members) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(members, ", ") + " }"
}
