package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// AppendAllow remembers an "always allow" answer: it adds rule to
// permissions.allow of root's own file in the user's configuration directory.
// Everything else in the file stays, comments included, and the file is
// replaced at once. A rule that stands there already is no error.
//
// It fails, and changes nothing, when the file cannot be parsed or written.
func AppendAllow(cfg Config, root, rule string) error {
	if cfg.UserConfigDir == "" {
		return errors.New("no user configuration directory is known: the answer cannot be remembered")
	}
	if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\x00\n\r") {
		return fmt.Errorf("%q cannot be a rule", rule)
	}
	root = canonical(root)
	file := cfg.answersFile(root)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // keep the link of people who link their configuration
	}
	return underLock(file, func() error {
		text, _, err := readRegular(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		changed, err := addAllow(file, text, root, rule)
		if err != nil || changed == nil {
			return err
		}
		return privatefile.Replace(file, changed)
	})
}

// addAllow returns text with the rule added, nil if it stands there already.
func addAllow(file string, text []byte, root, rule string) ([]byte, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		text = []byte("{}")
	}
	src := source{kind: User, file: file, root: root}
	now, err := parse(src, newVocabulary(), text)
	if err != nil {
		return nil, err
	}
	for _, e := range now.lists[keyAllow] {
		if e.Text == rule {
			return nil, nil
		}
	}
	doc, err := hujson.Parse(append([]byte(strings.TrimPrefix(string(text), "\ufeff")), '\n'))
	if err != nil {
		return nil, fmt.Errorf("settings file %s: %w", file, err)
	}
	if err := insertAllow(&doc, root, rule); err != nil {
		return nil, fmt.Errorf("settings file %s: %w", file, err)
	}
	doc.Format()
	changed := doc.Pack()
	then, err := parse(src, newVocabulary(), changed)
	if err != nil {
		return nil, fmt.Errorf("adding a rule to %s would break it: %w", file, err)
	}
	if got, want := len(then.lists[keyAllow]), len(now.lists[keyAllow])+1; got != want {
		return nil, fmt.Errorf("adding a rule to %s would leave %d allow rules instead of %d", file, got, want)
	}
	return changed, nil
}

// insertAllow adds the rule to the syntax tree, making what it needs.
func insertAllow(doc *hujson.Value, root, rule string) error {
	top, err := objectIn(doc, "the file")
	if err != nil {
		return err
	}
	if member(top, "workspace") == nil { // says whose answers these are, for the reader
		top.Members = append(top.Members, newMember("workspace", hujson.String(root)))
	}
	permissions, err := objectIn(child(top, "permissions", &hujson.Object{}), "permissions")
	if err != nil {
		return err
	}
	allow, ok := child(permissions, "allow", &hujson.Array{}).Value.(*hujson.Array)
	if !ok {
		return errors.New("permissions.allow is not an array: edit it by hand")
	}
	allow.Elements = append(allow.Elements, hujson.Value{Value: hujson.String(rule)})
	return nil
}

// child returns the member's value; one that is missing or null becomes empty.
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

// member returns the value of a name, the last one of several, or nil.
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
