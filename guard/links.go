package guard

import (
	"io/fs"
	"slices"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

// secretRule stands for the built-in mask of home secrets where a rule is needed.
var secretRule = &rules.Rule{Text: ruleSecret, Source: builtIn}

// linkRules returns the rules that deny reading and writing a file by one of its names.
func (k *policyData) linkRules(name string) (read, edit *rules.Rule) {
	read, edit = k.deny.Read.Match(name, false), k.deny.Edit.Match(name, false)
	if read == nil && (k.secrets.Hold(name) || k.isState(name)) {
		read = secretRule
	}
	return read, edit
}

// aliases returns the other names of denied files, from a walk that is at most a minute old.
func (k *policyData) aliases() map[string]bool {
	if k.deny.Read.Empty() {
		return nil
	}
	return k.links.recent().Aliases
}

// namesOf returns the names found by a walk that knows those of the file at path: it began after
// the file's change time, which every new or removed link sets.
func (k *policyData) namesOf(path Path) *linkNames {
	info, err := path.Stat()
	if err != nil {
		return k.links.after(time.Now())
	}
	return k.namesSince(info)
}

// namesSince is namesOf for the file that info describes.
func (k *policyData) namesSince(info fs.FileInfo) *linkNames {
	changed, ok := realpath.Of(info)
	if !ok {
		changed = time.Now() // each call walks again
	}
	return k.links.after(changed)
}

// outermost returns the real directories of the boundary that do not lie in another one: each name
// counts once.
func (k *policyData) outermost() []string {
	var dirs []string
	for _, b := range k.bounds {
		dirs = append(dirs, b.Real)
	}
	return outermostOf(dirs)
}

// deniedOutside returns files and directories outside the boundary that rules name or that hold
// secrets: a file in the boundary may be another name of one.
func (k *policyData) deniedOutside() []string {
	var out []string
	add := func(name string) {
		if name != "" && !k.inside.Hold(name) && !slices.ContainsFunc(k.inside.Names,
			func(in string) bool { return pathname.Within(in, name) }) {
			out = append(out, pathname.Native(name))
		}
	}
	for _, m := range []*rules.Matcher{k.deny.Read, k.deny.Edit} {
		for name := range m.Files() {
			add(name)
		}
		for name := range m.Dirs() {
			add(name)
		}
	}
	for _, s := range k.secrets.Names {
		add(s)
	}
	return out
}
