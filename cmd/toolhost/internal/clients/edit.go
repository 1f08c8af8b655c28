package clients

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard"
)

// State is the state of a server's entry in a client's file.
type State string

const (
	// Absent: there is no entry of that name.
	Absent State = "absent"
	// Ours: the entry starts or reaches a toolhost.
	Ours State = "installed"
	// Foreign: the entry of that name is for something else.
	Foreign State = "foreign"
)

// bom is the byte order mark that Windows editors put before UTF-8.
var bom = []byte("\xef\xbb\xbf")

func cutBOM(raw []byte) (mark, body []byte) {
	if body, ok := bytes.CutPrefix(raw, bom); ok {
		return bom, body
	}
	return nil, raw
}

// servers returns the container in a decoded file, or nil if there is none.
func (c Client) servers(file map[string]any) (map[string]any, error) {
	switch v := file[c.Container].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	}
	return nil, fmt.Errorf("%q is there but is not a set of named servers", c.Container)
}

// inspect looks for the entry of a server.
func (c Client) inspect(raw []byte, s Server) (State, any, error) {
	_, body := cutBOM(raw)
	file, err := c.format().decode(body)
	if err != nil {
		return "", nil, err
	}
	servers, err := c.servers(file)
	if err != nil {
		return "", nil, err
	}
	entry, ok := servers[s.Name]
	switch {
	case !ok:
		return Absent, nil, nil
	case isOurs(entry, s):
		return Ours, entry, nil
	}
	return Foreign, entry, nil
}

// commandLine returns the command and the arguments of a decoded entry, whichever keys they have.
func commandLine(entry any) []string {
	m, _ := entry.(map[string]any)
	var line []string
	add := func(v any) {
		switch v := v.(type) {
		case string:
			line = append(line, v)
		case []any:
			for _, arg := range v {
				line = append(line, fmt.Sprint(arg))
			}
		}
	}
	for _, key := range []string{"command", "cmd", "args"} {
		add(m[key])
	}
	return line
}

// address returns the URL of a decoded entry, or "".
func address(entry any) string {
	m, _ := entry.(map[string]any)
	for _, key := range []string{"url", "serverUrl", "uri", "httpUrl"} {
		if s, ok := m[key].(string); ok {
			return s
		}
	}
	return ""
}

// isOurs reports whether an entry starts or reaches a toolhost: it starts our program, has the URL of s, refers to
// our token, or has our endpoint on this machine.
func isOurs(entry any, s Server) bool {
	if line := commandLine(entry); len(line) > 0 {
		name := line[0][strings.LastIndexAny(line[0], `/\`)+1:]
		return line[0] == s.Command || strings.TrimSuffix(strings.ToLower(name), ".exe") == "toolhost"
	}
	to := address(entry)
	if to == "" {
		return false
	}
	if to == s.URL || strings.Contains(fmt.Sprint(entry), TokenVariable) {
		return true
	}
	u, err := url.Parse(to)
	return err == nil && u.Path == "/mcp" && guard.IsLoopback(u.Hostname())
}

// ownArguments returns the arguments of our entry that Install would not write, because a person added them.
func ownArguments(c Client, entry any) []string {
	line, written := append(commandLine(entry), ""), Arguments(c)
	var own []string
	for i := 1; i < len(line); i++ {
		switch arg := line[i]; {
		case strings.HasPrefix(arg, "--root="), strings.HasPrefix(arg, "--binary="), strings.HasPrefix(arg,
			"--far-dir="), !strings.HasPrefix(arg, "-"):
		case arg == "--root":
			i++
		case slices.Contains(written, arg) && written[slices.Index(written, arg)+1] == line[i+1]:
			i++
		default:
			own = append(own, arg)
		}
	}
	return own
}

// put writes the entry of a server into raw. An existing entry keeps the members that we do not set, unless replace
// is set.
func (c Client) put(raw []byte, s Server, replace bool) ([]byte, error) {
	mark, body := cutBOM(raw)
	before, err := c.format().decode(body)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(before)
	if err != nil {
		return nil, err
	}
	path, edited := []string{c.Container, s.Name}, body
	old, exists := servers[s.Name]
	if exists && replace {
		if edited, err = c.format().remove(edited, path); err != nil {
			return nil, err
		}
		exists = false
	}
	want := plain(c.entry(s)).(map[string]any)
	if exists {
		edited, want, err = mergeEntry(c, edited, path, s, old)
	} else {
		edited, err = c.format().set(edited, path, c.entry(s))
	}
	if err != nil {
		return nil, err
	}
	if err := checkEdit(c.format(), before, edited, path, want); err != nil {
		return nil, err
	}
	return slices.Concat(mark, edited), nil
}

// mergeEntry changes the members of an entry that differ from the wanted ones. want is the resulting entry.
func mergeEntry(c Client, body []byte, path []string, s Server, old any) (edited []byte, want map[string]any,
	err error) {
	was, ok := old.(map[string]any)
	if !ok {
		return nil, nil, byHand("%q is not a set of members", s.Name)
	}
	want = map[string]any{}
	for key, v := range was {
		want[key] = v
	}
	for _, key := range conflictingKeys(c, s) {
		if _, ok := was[key]; !ok {
			continue
		}
		delete(want, key)
		if body, err = c.format().remove(body, append(path, key)); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range c.entry(s) {
		if v, ok := was[f.key]; ok && (f.once || same(v, plain(f.value))) {
			continue
		}
		want[f.key] = plain(f.value)
		if body, err = c.format().set(body, append(path, f.key), f.value); err != nil {
			return nil, nil, err
		}
	}
	return body, want, nil
}

// take removes the entry of a server from raw.
func (c Client) take(raw []byte, name string) ([]byte, error) {
	mark, body := cutBOM(raw)
	before, err := c.format().decode(body)
	if err != nil {
		return nil, err
	}
	path := []string{c.Container, name}
	edited, err := c.format().remove(body, path)
	if err != nil {
		return nil, err
	}
	if err := checkEdit(c.format(), before, edited, path, nil); err != nil {
		return nil, err
	}
	return slices.Concat(mark, edited), nil
}

// checkEdit returns an error unless edited has want at path (nil: nothing) and is otherwise like before.
func checkEdit(f format, before map[string]any, edited []byte, path []string, want any) error {
	after, err := f.decode(edited)
	if err != nil {
		return byHand("the edited file would not parse: %v", err)
	}
	if !same(lookup(after, path), want) {
		return byHand("the entry would not come out as meant")
	}
	if !same(without(before, path), without(after, path)) {
		return byHand("something else in it would change")
	}
	return nil
}

// lookup returns the value at path in a decoded file, or nil.
func lookup(file map[string]any, path []string) any {
	v, below := file[path[0]], path[1:]
	if len(below) == 0 {
		return v
	}
	m, _ := v.(map[string]any)
	return lookup(m, below)
}

// without returns a decoded file without the value at path, and without the objects above it that would be empty.
func without(file map[string]any, path []string) map[string]any {
	rest, below := maps.Clone(file), map[string]any{}
	if m, ok := file[path[0]].(map[string]any); ok && len(path) > 1 {
		below = without(m, path[1:])
	}
	if rest == nil || len(below) == 0 {
		delete(rest, path[0])
		return rest
	}
	rest[path[0]] = below
	return rest
}

// Lines returns the lines that a person would add to the client's file by hand.
func (c Client) Lines(s Server) (string, error) {
	text, err := c.format().set(nil, []string{c.Container, s.Name}, c.entry(s))
	return string(text), err
}
