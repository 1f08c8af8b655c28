package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON. Unless strict is set, it has comments and trailing commas.
type jsonFormat struct {
	// strict says that the client reads plain JSON only, so a file with comments is broken for the client too.
	strict bool
}

func (f jsonFormat) decode(body []byte) (map[string]any, error) {
	if isBlank(body) {
		return map[string]any{}, nil
	}
	plain := bytes.Clone(body)
	if !f.strict {
		standard, err := hujson.Standardize(ended(plain))
		if err != nil {
			return nil, jsonError(body, err)
		}
		plain = standard
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, jsonError(body, err)
	}
	if rest := bytes.TrimLeft(plain[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, at(body, len(plain)-len(rest), "there is more after the end of the object")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, at(body, 0, "the file does not hold a JSON object")
	}
	return m, nil
}

// jsonError adds line and column to a parser's error.
func jsonError(body []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return at(body, int(syntax.Offset)-1, "%s", syntax.Error())
	}
	var e positionError
	if _, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &e.line, &e.column); scan == nil {
		_, e.message, _ = strings.Cut(err.Error(), ": line ")
		_, e.message, _ = strings.Cut(e.message, ": ")
		return &e
	}
	return at(body, len(body), "%s", err.Error())
}

// A jsonTree is a parsed body, with its style.
type jsonTree struct {
	body []byte
	root hujson.Value
	// unit is one step of indentation.
	unit string
	// oneLine says that the file has members and no line break.
	oneLine bool
}

// ended returns a body with a line break at its end, which hujson needs after a comment although editors do not.
func ended(body []byte) []byte { return append(slices.Clip(body), '\n') }

func parseJSON(body []byte) (jsonTree, error) {
	root, err := hujson.Parse(ended(body))
	if err != nil {
		return jsonTree{}, jsonError(body, err)
	}
	t := jsonTree{body: body, root: root, unit: "  "}
	obj, ok := root.Value.(*hujson.Object)
	if !ok {
		return jsonTree{}, at(body, root.StartOffset, "the file does not hold a JSON object")
	}
	t.oneLine = len(obj.Members) > 0 && !bytes.Contains(body[root.StartOffset:root.EndOffset], []byte("\n"))
	if indent, ok := memberIndent(obj); ok && indent != "" {
		t.unit = indent
	}
	return t, nil
}

// memberIndent returns the indentation of the last member of an object that begins a line.
func memberIndent(obj *hujson.Object) (string, bool) {
	for i := len(obj.Members) - 1; i >= 0; i-- {
		extra := obj.Members[i].Name.BeforeExtra
		if nl := bytes.LastIndexByte(extra, '\n'); nl >= 0 {
			line := extra[nl+1:]
			return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), true
		}
	}
	return "", false
}

// member returns the index of a key in an object, or -1. A key that occurs twice is an error, because parsers
// disagree about which one counts.
func (t jsonTree) member(obj *hujson.Object, key string) (int, error) {
	found := -1
	for i, m := range obj.Members {
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok || name.String() != key {
			continue
		}
		if found >= 0 {
			return 0, at(t.body, m.Name.StartOffset, "%q stands here a second time", key)
		}
		found = i
	}
	return found, nil
}

// object follows path as far as there are objects. rest is the part of the path that does not exist.
func (t jsonTree) object(path []string) (v hujson.Value, rest []string, err error) {
	v = t.root
	for i, key := range path {
		obj := v.Value.(*hujson.Object)
		n, err := t.member(obj, key)
		if err != nil || n < 0 {
			return v, path[i:], err
		}
		next := obj.Members[n].Value
		if _, ok := next.Value.(*hujson.Object); !ok {
			return v, nil, at(t.body, next.StartOffset, "%q is not an object", key)
		}
		v = next
	}
	return v, nil, nil
}

func (jsonFormat) set(body []byte, path []string, value any) ([]byte, error) {
	if isBlank(body) {
		body = []byte("{}\n")
	}
	t, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	parent, rest, err := t.object(path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	key := path[len(path)-1]
	for i := len(rest) - 1; i >= 0; i-- { // create the missing objects, from the inside out
		value, key = object{{key: key, value: value}}, rest[i]
	}
	depth := len(path) - len(rest)
	obj := parent.Value.(*hujson.Object)
	n, err := t.member(obj, key)
	if err != nil {
		return nil, err
	}
	indent, oneLine := t.layout(obj, depth)
	text := t.encode(value, indent, oneLine)
	if n >= 0 {
		old := obj.Members[n].Value
		return apply(body, splice{old.StartOffset, old.EndOffset, text}), nil
	}
	return apply(body, t.insertion(parent, indent, oneLine, quote(key)+t.colon(oneLine)+text)...), nil
}

// layout returns how the members of an object at a depth are written, or would be if it has none.
func (t jsonTree) layout(obj *hujson.Object, depth int) (indent string, oneLine bool) {
	if t.oneLine {
		return "", true
	}
	if indent, ok := memberIndent(obj); ok {
		return indent, false
	}
	return strings.Repeat(t.unit, depth), len(obj.Members) > 0
}

func (t jsonTree) colon(oneLine bool) string {
	if oneLine && !bytes.Contains(t.body, []byte(": ")) {
		return ":"
	}
	return ": "
}

// insertion returns the splices that add a member at the end of an object, after the comments there.
func (t jsonTree) insertion(parent hujson.Value, indent string, oneLine bool, member string) []splice {
	obj := parent.Value.(*hujson.Object)
	lead := "\n" + indent
	if oneLine {
		lead = strings.TrimPrefix(t.colon(true), ":")
	}
	if len(obj.Members) == 0 {
		begin := parent.StartOffset + 1
		from, to := begin+commentsEnd(obj.AfterExtra), begin+len(obj.AfterExtra)
		if oneLine {
			return []splice{{from, to, member}}
		}
		return []splice{{from, to, lead + member + "\n" + strings.TrimSuffix(indent, t.unit)}}
	}
	last := obj.Members[len(obj.Members)-1].Value
	if last.AfterExtra != nil { // if there is a trailing comma, the new member gets one too
		place := last.EndOffset + len(last.AfterExtra) + 1 + commentsEnd(obj.AfterExtra)
		return []splice{{place, place, lead + member + ","}}
	}
	place := last.EndOffset + commentsEnd(obj.AfterExtra)
	return []splice{{last.EndOffset, last.EndOffset, ","}, {place, place, lead + member}}
}

// commentsEnd returns the offset after the last comment in the text between two values. A line comment ends before
// its line break.
func commentsEnd(extra []byte) int {
	end := 0
	for i := 0; i+1 < len(extra); {
		switch {
		case extra[i] == '/' && extra[i+1] == '/':
			n := bytes.IndexByte(extra[i:], '\n')
			if n < 0 {
				n = len(extra) - i
			}
			i += n
			end = i
			if extra[end-1] == '\r' {
				end--
			}
		case extra[i] == '/' && extra[i+1] == '*':
			n := bytes.Index(extra[i+2:], []byte("*/"))
			if n < 0 {
				return len(extra)
			}
			i += n + 4
			end = i
		default:
			i++
		}
	}
	return end
}

// encode returns a value as JSON, with lists of strings on one line.
func (t jsonTree) encode(v any, indent string, oneLine bool) string {
	obj, ok := v.(object)
	switch {
	case !ok && oneLine && t.colon(true) == ":":
		return strings.ReplaceAll(scalar(v), `", "`, `","`)
	case !ok:
		return scalar(v)
	case len(obj) == 0:
		return "{}"
	}
	inner, between, end := indent+t.unit, ",\n"+indent+t.unit, "\n"+indent+"}"
	begin := "{\n" + inner
	if oneLine {
		begin, between, end = "{", strings.Replace(t.colon(true), ":", ",", 1), "}"
	}
	members := make([]string, len(obj))
	for i, f := range obj {
		members[i] = quote(f.key) + t.colon(oneLine) + t.encode(f.value, inner, oneLine)
	}
	return begin + strings.Join(members, between) + end
}

func (jsonFormat) remove(body []byte, path []string) ([]byte, error) {
	t, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	parent, rest, err := t.object(path[:len(path)-1])
	if err != nil || len(rest) > 0 {
		return nil, err
	}
	obj := parent.Value.(*hujson.Object)
	n, err := t.member(obj, path[len(path)-1])
	if err != nil || n < 0 {
		return nil, err
	}
	m := obj.Members[n]
	from := m.Name.StartOffset - len(m.Name.BeforeExtra) + commentsEnd(m.Name.BeforeExtra)
	to := m.Value.EndOffset
	last := n == len(obj.Members)-1
	switch {
	case !last && isBlankLine(m.Name.BeforeExtra) && isBlankLine(obj.Members[n+1].Name.BeforeExtra): // all on one line
		return apply(body, splice{m.Name.StartOffset, obj.Members[n+1].Name.StartOffset, ""}), nil
	case !last || m.Value.AfterExtra != nil:
		return apply(body, splice{from, to + len(m.Value.AfterExtra) + 1, ""}), nil
	case n > 0: // including the comma before it
		before := obj.Members[n-1].Value
		comma := before.EndOffset + len(before.AfterExtra)
		return apply(body, splice{comma, comma + 1, ""}, splice{from, to, ""}), nil
	case isBlank(m.Name.BeforeExtra) && isBlank(m.Value.AfterExtra) && isBlank(obj.AfterExtra):
		return apply(body, splice{parent.StartOffset, parent.EndOffset, "{}"}), nil
	}
	return apply(body, splice{from, to, ""}), nil
}

// isBlank reports whether extra consists of white space only.
func isBlank(extra []byte) bool { return len(bytes.Trim(extra, " \t\r\n")) == 0 }

// isBlankLine reports whether extra consists of blanks only, without a line break.
func isBlankLine(extra []byte) bool { return len(bytes.Trim(extra, " \t")) == 0 }
