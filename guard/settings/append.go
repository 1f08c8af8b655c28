package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Lists of [Append]: rules that allow calls, hosts that commands may reach, and hosts that one program may reach, see
// [ProgramHost].
const (
	ListAllow    = keyAllow
	ListHosts    = keyDomains
	ListPrograms = keyPrograms
)

// Append adds an entry to a list, such as "permissions.deny", of root's own file in the user's configuration
// directory. An entry of sandbox.credentials is a JSON object, which replaces the mask of the same credential.
// Everything else in the file stays, comments included, and the file is replaced atomically. An entry that exists
// already is not an error.
//
// It fails, and changes nothing, when the file cannot be parsed or written.
func Append(cfg Config, root, list, text string) error {
	if cfg.UserConfigDir == "" {
		return errors.New("no user configuration directory is known: the rule cannot be kept")
	}
	if strings.TrimSpace(text) == "" || strings.ContainsAny(text, "\x00\n\r") {
		return fmt.Errorf("%q cannot be a rule", text)
	}
	root = canonical(root)
	src := source{kind: User, file: cfg.answersFile(root), root: root}
	return editList(src, list, func(now []Entry, doc *hujson.Value) (grows int, err error) {
		if slices.ContainsFunc(now, func(e Entry) bool { return e.Text == text }) {
			return 0, errUnchanged
		}
		masked := maskedBy(list, text)
		replaced := 0
		if slices.ContainsFunc(now, func(e Entry) bool { return e.Object != "" && e.Text == masked }) {
			if replaced, err = removeEntries(doc, list, masked, true); err != nil {
				return 0, err
			}
		}
		return 1 - replaced, insert(doc, root, list, text)
	})
}

// Remove removes an entry from the list in the user's own file that contains it. Everything else in the file stays.
func Remove(e Entry, list string) error {
	if e.Kind != User || e.Client {
		return fmt.Errorf("%s is set in %s, which is not a file of toolhost's own user settings: edit it there",
			e.Text, e.Where())
	}
	return editList(source{kind: e.Kind, file: e.File, root: e.Root}, list, func(_ []Entry,
		doc *hujson.Value) (grows int, err error) {
		n, err := removeEntries(doc, list, e.Text, e.Object != "")
		if err == nil && n == 0 {
			err = fmt.Errorf("%s is no longer in %s", e.Text, e.File)
		}
		return -n, err
	})
}

// removeEntries removes an entry wherever a list has it, or the masks of a credential, and returns how many there were.
func removeEntries(doc *hujson.Value, list, text string, masks bool) (n int, err error) {
	path, text := listPath(list, text)
	elements, err := elementsOf(doc, path)
	if err != nil {
		return 0, err
	}
	for i, element := range slices.Backward(elements) {
		object, _ := element.Value.(*hujson.Object)
		has := func(name, value string) bool {
			v := member(object, name)
			return v != nil && literal(*v) == value
		}
		if literal(element) != text &&
			(object == nil || !has("name", text) && !has("path", text) || has("mode", "mask") != masks) {
			continue
		}
		patch := fmt.Sprintf(`[{"op":"remove","path":"/%s/%d"}]`, strings.Join(path, "/"), i)
		if err := doc.Patch([]byte(patch)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// errUnchanged reports that an edit would not change the file.
var errUnchanged = errors.New("unchanged")

// An editFunc changes a list in a file, and returns by how many entries it grows.
type editFunc func(now []Entry, doc *hujson.Value) (grows int, err error)

// editList changes a list of a settings file under its lock.
func editList(src source, list string, edit editFunc) error {
	if real, err := filepath.EvalSymlinks(src.file); err == nil {
		src.file = real // keep the link of a person who links the configuration
	}
	return underLock(src.file, func() error {
		text, _, err := readRegular(src.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		changed, err := editedList(src, text, list, edit)
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("settings file %s: %w", src.file, err)
		}
		return privatefile.Replace(src.file, changed)
	})
}

// editedList returns the text with the list changed, after it has verified that the text parses to the list that was
// intended.
func editedList(src source, text []byte, list string, edit editFunc) ([]byte, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		text = []byte("{}")
	}
	now, err := parse(src, newKeySet(), text)
	if err != nil {
		return nil, err
	}
	doc, err := hujson.Parse(append([]byte(strings.TrimPrefix(string(text), "\ufeff")), '\n'))
	if err != nil {
		return nil, err
	}
	grows, err := edit(now.lists[list], &doc)
	if err != nil {
		return nil, err
	}
	if grows >= 0 {
		doc.Format()
	}
	changed := doc.Pack()
	then, err := parse(src, newKeySet(), changed)
	if err != nil {
		return nil, fmt.Errorf("the change would break it: %w", err)
	}
	if got, want := len(then.lists[list]), len(now.lists[list])+grows; got != want {
		return nil, fmt.Errorf("the change would leave %d entries of %s instead of %d: edit it by hand",
			got, list, want)
	}
	return changed, nil
}

// insert adds the entry to the syntax tree, making what it needs.
func insert(doc *hujson.Value, root, list, text string) error {
	top, err := objectIn(doc, "the file")
	if err != nil {
		return err
	}
	if member(top, "workspace") == nil { // tells readers whose answers these are
		top.Members = append(top.Members, newMember("workspace", hujson.String(root)))
	}
	path, text := listPath(list, text)
	for _, name := range path[:len(path)-1] {
		if top, err = objectIn(child(top, name, &hujson.Object{}), name); err != nil {
			return err
		}
	}
	entries, ok := child(top, path[len(path)-1], &hujson.Array{}).Value.(*hujson.Array)
	if !ok {
		return fmt.Errorf("%s is not an array: edit it by hand", list)
	}
	entry := hujson.Value{Value: hujson.String(text)}
	if k := newKeySet().byName[list]; k != nil && k.member != "" {
		if entry, err = hujson.Parse([]byte(text)); err != nil {
			return err
		}
	}
	entries.Elements = append(entries.Elements, entry)
	return nil
}

// elementsOf returns the elements of a list, including those that are not entries.
func elementsOf(doc *hujson.Value, path []string) ([]hujson.Value, error) {
	list := strings.Join(path, ".")
	for _, name := range path {
		object, err := objectIn(doc, "what holds "+name)
		if err != nil {
			return nil, err
		}
		if doc = member(object, name); doc == nil {
			return nil, fmt.Errorf("it has no %s", list)
		}
	}
	entries, ok := doc.Value.(*hujson.Array)
	if !ok {
		return nil, fmt.Errorf("%s is not an array: edit it by hand", list)
	}
	return entries.Elements, nil
}

// child returns the value of a member. A member that is missing or null becomes empty.
func child(object *hujson.Object, name string, empty hujson.ValueTrimmed) *hujson.Value {
	v := member(object, name)
	if v == nil {
		object.Members = append(object.Members, newMember(name, empty))
		return member(object, name)
	}
	if isNull(*v) {
		v.Value = empty
	}
	return v
}

func newMember(name string, v hujson.ValueTrimmed) hujson.ObjectMember {
	return hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{Value: v}}
}

// member returns the value of the last member of that name, or nil.
func member(object *hujson.Object, name string) *hujson.Value {
	for i := len(object.Members) - 1; i >= 0; i-- {
		if literal(object.Members[i].Name) == name {
			return &object.Members[i].Value
		}
	}
	return nil
}

func objectIn(v *hujson.Value, what string) (*hujson.Object, error) {
	if object, ok := v.Value.(*hujson.Object); ok {
		return object, nil
	}
	return nil, fmt.Errorf("%s is not an object: edit it by hand", what)
}

// SetServer adds a server to the mcpServers of a file, and with an empty entry removes it. Everything else in the
// file stays.
func SetServer(file, name string, entry []byte) error {
	return editServers(file, func(text []byte) ([]byte, error) { return withServer(text, name, entry) })
}

// AllowServerHosts adds hosts to network.allowedDomains of a server in a file. Everything else in the file stays.
func AllowServerHosts(file, name string, hosts []string) error {
	return editServers(file, func(text []byte) ([]byte, error) {
		doc, err := hujson.Parse(append([]byte(strings.TrimPrefix(string(text), "\ufeff")), '\n'))
		if err != nil {
			return nil, err
		}
		at := &doc
		for _, step := range []string{keyServers, name, "network"} {
			object, err := objectIn(at, "what holds "+step)
			if err != nil {
				return nil, err
			}
			if step != "network" && member(object, step) == nil {
				return nil, fmt.Errorf("it has no server %q", name)
			}
			at = child(object, step, &hujson.Object{})
		}
		object, err := objectIn(at, "network")
		if err != nil {
			return nil, err
		}
		list, ok := child(object, "allowedDomains", &hujson.Array{}).Value.(*hujson.Array)
		if !ok {
			return nil, errors.New("network.allowedDomains is not an array: edit it by hand")
		}
		for _, host := range hosts {
			if !slices.ContainsFunc(list.Elements, func(el hujson.Value) bool { return literal(el) == host }) {
				list.Elements = append(list.Elements, hujson.Value{Value: hujson.String(host)})
			}
		}
		doc.Format()
		return doc.Pack(), nil
	})
}

// editServers changes a file with servers under its lock.
func editServers(file string, edit func(text []byte) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return underLock(file, func() error {
		text, _, err := readRegular(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		changed, err := edit(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return privatefile.Replace(file, changed)
	})
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b []byte) bool {
	var v, w any
	a, err := hujson.Standardize(slices.Clone(a))
	return err == nil && json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && reflect.DeepEqual(v, w)
}

func withServer(text []byte, name string, entry []byte) ([]byte, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		text = []byte("{}")
	}
	doc, err := hujson.Parse(append([]byte(strings.TrimPrefix(string(text), "\ufeff")), '\n'))
	if err != nil {
		return nil, err
	}
	top, err := objectIn(&doc, "the file")
	if err != nil {
		return nil, err
	}
	servers, err := objectIn(child(top, "mcpServers", &hujson.Object{}), "mcpServers")
	if err != nil {
		return nil, err
	}
	switch was := member(servers, name); {
	case len(entry) == 0 && was == nil:
		return nil, fmt.Errorf("it has no server %q", name)
	case len(entry) == 0:
		servers.Members = slices.DeleteFunc(servers.Members,
			func(m hujson.ObjectMember) bool { return literal(m.Name) == name })
		return doc.Pack(), nil
	case was != nil && sameJSON(was.Pack(), entry):
		return text, nil
	case was != nil:
		return nil, fmt.Errorf("it has a server %q already: remove that first", name)
	}
	value, err := hujson.Parse(entry)
	if err != nil {
		return nil, err
	}
	servers.Members = append(servers.Members, newMember(name, value.Value))
	doc.Format()
	return doc.Pack(), nil
}
