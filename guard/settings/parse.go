package settings

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// maxFileSize bounds a settings file. Real ones hold a few kilobytes; a larger
// one is a mistake or an attempt to make every start slow.
const maxFileSize = 1 << 20

// maxDepth bounds how deep arrays and objects nest. The shape needs six; the
// parser recurses, so without a bound a megabyte of "[" costs a gigabyte of stack.
const maxDepth = 32

// layer is the content of one source.
type layer struct {
	source  source
	lists   map[string][]Entry // by key name
	scalars map[string]Entry   // by key name
	hooks   map[string][]HookMatcher
	env     map[string]Entry // by variable
	// held are earlier values of scalars that a running server keeps, as far as they are tighter (see retained.go).
	held      map[string][]Entry
	heldHooks []heldHook // taken out of the file, but still in force in a running server
	warnings  []warning
}

func newLayer(src source) *layer {
	return &layer{source: src, lists: map[string][]Entry{}, scalars: map[string]Entry{},
		hooks: map[string][]HookMatcher{}, env: map[string]Entry{}, held: map[string][]Entry{}}
}

// parser reads one file into a layer.
type parser struct {
	*layer
	words *keySet
	lines []int // offset of each line's first byte
	// respelt says that the keys being read are misspelt: only values that remove rights apply.
	respelt bool
}

// parse reads the text of a settings file: JSON, with comments and trailing
// commas. What is wrong inside becomes a warning; an error, always a
// *parseError, means that nothing of the file could be understood.
func parse(src source, words *keySet, text []byte) (*layer, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	p := &parser{layer: newLayer(src), words: words, lines: lineStarts(text)}
	if len(bytes.TrimSpace(text)) == 0 {
		p.warnings = append(p.warnings, warning{File: src.file, Text: "the file is empty; nothing is taken from it"})
		return p.layer, nil
	}
	if off, err := precheck(text); err != nil {
		line, column := p.position(off)
		return nil, &parseError{File: src.file, Line: line, Column: column, Err: err}
	}
	// A line comment may end with the file; the parser wants a newline.
	root, err := hujson.Parse(append(bytes.Clone(text), '\n'))
	if err != nil {
		return nil, p.syntaxError(err, len(text))
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		line, column := p.position(root.StartOffset)
		return nil, &parseError{File: src.file, Line: line, Column: column,
			Err: fmt.Errorf("the file holds %s; a JSON object is expected", describe(root))}
	}
	p.object("", object)
	return p.layer, nil
}

// syntaxError gives an error of hujson its position as fields.
func (p *parser) syntaxError(err error, end int) error {
	e := &parseError{File: p.source.file, Err: err}
	if _, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &e.Line, &e.Column); scan == nil {
		if cause := errors.Unwrap(err); cause != nil {
			e.Err = cause
		}
	}
	if e.Line > len(p.lines) || e.Line == 0 { // in the newline that was added
		e.Line, e.Column = p.position(end)
	}
	return e
}

// precheck refuses text that is not UTF-8, whose rules would match nothing, and nesting that is deeper
// than maxDepth.
func precheck(text []byte) (offset int, err error) {
	if !utf8.Valid(text) {
		for i := 0; i < len(text); {
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				return i, fmt.Errorf("byte 0x%02x is not UTF-8; save the file as UTF-8", text[i])
			}
			i += n
		}
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '/':
			i = skipToken(text, i)
		case '[', '{':
			if depth++; depth > maxDepth {
				return i, fmt.Errorf("more than %d levels of nesting", maxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	return 0, nil
}

// skipToken returns the offset of the last byte of the string or comment that starts at i, or i if none does.
func skipToken(text []byte, i int) int {
	rest := text[i+1:]
	end := -1
	switch {
	case text[i] == '"':
		for n := 0; n < len(rest); n++ {
			if rest[n] == '\\' {
				n++
			} else if rest[n] == '"' {
				return i + 1 + n
			}
		}
	case bytes.HasPrefix(rest, []byte("/")):
		end = bytes.IndexByte(rest, '\n')
	case bytes.HasPrefix(rest, []byte("*")):
		if end = bytes.Index(rest[1:], []byte("*/")); end >= 0 {
			end += 2
		}
	default:
		return i
	}
	if end < 0 {
		return len(text)
	}
	return i + 1 + end
}

func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// position turns an offset into line and column, both from 1.
func (p *parser) position(offset int) (line, column int) {
	line = sort.SearchInts(p.lines, offset+1)
	return line, offset - p.lines[line-1] + 1
}

func (p *parser) warn(v hujson.Value, format string, args ...any) {
	line, column := p.position(v.StartOffset)
	p.warnings = append(p.warnings, warning{File: p.source.file, Line: line, Column: column,
		Text: fmt.Sprintf(format, args...)})
}

func (p *parser) entry(v hujson.Value, text string) Entry {
	line, _ := p.position(v.StartOffset)
	return Entry{Text: text, Kind: p.source.kind, File: p.source.file, Line: line, Root: p.source.root,
		Client: p.source.client}
}

// object reads the members of the object at prefix ("" is the file itself).
func (p *parser) object(prefix string, object *hujson.Object) {
	seen := map[string]bool{}
	for _, m := range object.Members {
		name := literal(m.Name)
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		if seen[name] {
			p.warn(m.Name, "%q stands here twice; lists are joined, of other values the last one counts", path)
		}
		seen[name] = true
		p.member(prefix, path, m)
	}
}

func (p *parser) member(prefix, path string, m hujson.ObjectMember) {
	switch k := p.words.byName[path]; {
	case isNull(m.Value):
		// Same as absent.
	case p.source.servers && path != keyServers:
	case k != nil && k.raw != "" && (!p.respelt || k.tightens):
		p.rawList(k, m.Value)
	case k != nil && k.named && !p.respelt:
		p.namedLists(k, m.Value)
	case k != nil && k.form == formList && (!p.respelt || k.tightens):
		p.list(k, m.Value)
	case p.respelt && (k != nil || path == "hooks" || path == Classifier || path == "env"):
		p.warn(m.Name, "%q is skipped, because of how the key is spelt", path)
	case k != nil:
		p.scalar(k, m.Value)
	case path == "hooks":
		p.hookEvents(m.Value)
	case path == Classifier:
		p.classifier(m.Value)
	case path == "env":
		p.environment(m.Value)
	case p.namesBubblewrap(path, m.Value):
		p.warn(m.Name, "%q names bubblewrap, which toolhost no longer uses: it is skipped, and commands run in the best "+
			"sandbox "+
			"that works here (toolhost doctor names it). Remove it", path)
	case p.words.groups[path]:
		if object, ok := m.Value.Value.(*hujson.Object); ok {
			p.object(path, object)
		} else {
			p.wrongType(path, m.Value, "an object")
		}
	case p.words.unsupported[path]:
		p.warn(m.Name, "toolhost does not apply %q", path)
	case p.words.ignored[path]:
	default:
		i := slices.IndexFunc(p.words.siblings(prefix),
			func(known string) bool { return strings.EqualFold(pathname.Plain(path), known) })
		if i < 0 {
			p.warn(m.Name, "unknown key %q%s", path, suggest(path, p.words.siblings(prefix)))
			return
		}
		meant := p.words.siblings(prefix)[i]
		p.warn(m.Name, "unknown key %+q (did you mean %q?): what it denies or asks for holds, the rest is skipped",
			path, meant)
		was := p.respelt
		p.respelt = true
		p.member(prefix, meant, m)
		p.respelt = was
	}
}

// bubblewrap matches the names of a backend that earlier versions had.
var bubblewrap = regexp.MustCompile(`(?i)bwrap|bubblewrap`)

// namesBubblewrap reports whether a member that is no setting, or a group of settings that is no object, chooses
// bubblewrap as the sandbox.
func (p *parser) namesBubblewrap(path string, v hujson.Value) bool {
	if v.Value.Kind() == '{' && p.words.groups[path] {
		return false
	}
	v = v.Clone()
	v.Minimize() // without comments
	return strings.HasPrefix(path, "sandbox") && bubblewrap.MatchString(path+" "+v.String())
}

func (p *parser) wrongType(path string, v hujson.Value, want string) {
	p.warn(v, "%s is %s; %s is expected. It is skipped", path, describe(v), want)
}

// siblings returns the member names that are known in the object at prefix.
func (w *keySet) siblings(prefix string) []string {
	set := map[string]bool{}
	if prefix == "" {
		set["hooks"], set["env"] = true, true
	} else {
		prefix += "."
	}
	for name := range w.byName {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			head, _, _ := strings.Cut(rest, ".")
			set[prefix+head] = true
		}
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// suggest names the nearest of the known words, if one is near.
func suggest(word string, known []string) string {
	best, distance := "", 1+len(word)/4
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d <= distance &&
			(best == "" || d < distance) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

func oneOf(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "one of " + strings.Join(quoted, ", ")
}

func isString(v hujson.Value) bool { return v.Value.Kind() == '"' }
func isNull(v hujson.Value) bool   { return v.Value.Kind() == 'n' }

// literal returns the text of a string, or any other literal as written.
func literal(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok {
		return l.String()
	}
	return ""
}

// describe names the kind of a value, for "X is …; … is expected".
func describe(v hujson.Value) string {
	const longest = 40 // enough to recognise the value in a message
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case 't', 'f':
		return literal(v)
	}
	text := string(v.Value.(hujson.Literal))
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + "…"
	}
	if isString(v) {
		return "the string " + text
	}
	return "the number " + text
}

// carvesOut reports whether the entry is a "!" pattern, which excludes paths from earlier entries. In a Bash
// rule, "!" is part of the command.
func carvesOut(e Entry) bool {
	tool, specifier, ok := strings.Cut(e.Text, "(")
	if !ok {
		return strings.HasPrefix(strings.TrimSpace(e.Text), "!")
	}
	return strings.HasPrefix(strings.TrimSpace(specifier), "!") &&
		tool != "Bash" && tool != "WebFetch" && !strings.HasPrefix(tool, "mcp__")
}
