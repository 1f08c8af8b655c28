package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tailscale/hujson"
)

func (p *parser) list(k *key, v hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	if _, object := v.Value.(*hujson.Object); object && k.objects {
		array, ok = &hujson.Array{Elements: []hujson.Value{v}}, true
	}
	if !ok {
		// A single string in place of a list has only one meaning, and to skip a deny would loosen.
		if !k.tightens || !isString(v) {
			p.wrongType(k.name, v, "an array of "+strings.TrimPrefix(k.entry(), "a ")+"s")
			return
		}
		p.warn(v, "%s is a string; an array of strings is expected. It is taken as the only entry", k.name)
		array = &hujson.Array{Elements: []hujson.Value{v}}
	}
	for _, el := range array.Elements {
		if _, object := el.Value.(*hujson.Object); object && k.objects {
			text := el.Clone()
			text.Minimize()
			if p.isKnown(k, el, provider(el)) {
				p.lists[k.name] = append(p.lists[k.name], p.entry(el, text.String()))
			}
			continue
		}
		mask := ""
		if k.member != "" {
			el, mask = p.credential(k, el)
		}
		switch text := literal(el); {
		case !isString(el) || k.objects:
			p.wrongType("an entry of "+k.name, el, k.entry())
		case strings.TrimSpace(text) == "":
			p.warn(el, "an entry of %s is empty. It is skipped", k.name)
		case !p.isKnown(k, el, text):
		default:
			e := p.entry(el, text)
			if !p.respelt {
				e.Object = mask
			}
			p.lists[k.name] = append(p.lists[k.name], e)
			if p.respelt {
				p.warn(el, "%s: %q holds, although its key is spelt otherwise", k.name, text)
			}
		}
	}
}

// isKnown reports whether an entry of a list has a value that exists, and warns if it has not.
func (p *parser) isKnown(k *key, entry hujson.Value, value string) bool {
	if k.known == nil || slices.Contains(k.known, value) {
		return true
	}
	what := "an entry of " + k.name
	if k.objects {
		what = "the provider of " + what
	}
	p.warn(entry, "%s is %q%s; %s is expected. The entry is skipped", what, value, suggest(value, k.known), oneOf(k.known))
	return false
}

// provider returns the string member "provider" of an object, or "".
func provider(object hujson.Value) string {
	if member := object.Find("/provider"); member != nil && isString(*member) {
		return literal(*member)
	}
	return ""
}

// namedLists reads an object of lists.
func (p *parser) namedLists(k *key, v hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		p.wrongType(k.name, v, "an object of arrays")
		return
	}
	for _, m := range object.Members {
		name := literal(m.Name)
		array, ok := m.Value.Value.(*hujson.Array)
		if !ok || name == "" || strings.ContainsAny(name, ": /") {
			p.warn(m.Name, "%s: %q is no name with an array of strings. It is skipped", k.name, name)
			continue
		}
		for _, el := range array.Elements {
			if text := literal(el); isString(el) && strings.TrimSpace(text) != "" {
				p.lists[k.name] = append(p.lists[k.name], p.entry(el, name+nameSeparator+text))
			} else {
				p.wrongType("an entry of "+k.name, el, "a string")
			}
		}
	}
}

// nameSeparator stands between the name and the text of an entry of a list that is named.
const nameSeparator = ": "

// ProgramHost returns the entry of sandbox.network.programs that lets a program reach a host.
func ProgramHost(program, host string) string { return program + nameSeparator + host }

// CutProgramHost returns the program and the host of an entry of sandbox.network.programs.
func CutProgramHost(entry string) (program, host string) {
	program, host, _ = strings.Cut(entry, nameSeparator)
	return program, host
}

// listPath returns the names of the objects that lead to the array of an entry, and its text there.
func listPath(list, entry string) (path []string, text string) {
	path = strings.Split(list, ".")
	if list != keyPrograms {
		return path, entry
	}
	name, text := CutProgramHost(entry)
	return append(path, name), text
}

// credential returns the member of an object that the entry is made of, and the object if its mode is "mask". The
// entry forbids the credential even if the rest of the object is wrong.
func (p *parser) credential(k *key, v hujson.Value) (entry hujson.Value, mask string) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		if isString(v) {
			p.warn(v, "an entry of %s is a string; %s is expected. It is denied", k.name, k.entry())
		}
		return v, ""
	}
	entry, mode := v, ""
	for _, m := range object.Members {
		switch literal(m.Name) {
		case k.member:
			entry = m.Value
		case "mode":
			mode = literal(m.Value)
		}
	}
	switch mode {
	case "mask":
		text := v.Clone()
		text.Minimize()
		return entry, text.String()
	case "deny":
	default:
		p.warn(v, "an entry of %s has the mode %q; \"deny\" and \"mask\" are known here. It is denied", k.name, mode)
	}
	return entry, ""
}

// entry names the kind of an entry of a list.
func (k *key) entry() string {
	switch {
	case k.objects:
		return "an object"
	case k.member == "":
		return "a string"
	}
	return fmt.Sprintf(`an object such as {"%s": …, "mode": "deny"}`, k.member)
}

func (p *parser) scalar(k *key, v hujson.Value) {
	if k.from == onlyManaged && !k.countsFrom(p.source.kind) {
		p.warn(v, "%s counts in managed settings only. It is skipped", k.name)
		return
	}
	text, want := k.read(v)
	if want == "" {
		p.scalars[k.name] = p.entry(v, text)
		return
	}
	if k.unknown == "" || !isString(v) {
		p.wrongType(k.name, v, want)
		return
	}
	p.warn(v, "%s is %s%s; %s is expected. %q is used instead", k.name, describe(v), suggest(literal(v), k.order),
		want, k.unknown)
	p.scalars[k.name] = p.entry(v, k.unknown)
}

// read returns the value in canonical text, or what the key expects instead.
func (k *key) read(v hujson.Value) (text, want string) {
	text = literal(v)
	switch k.form {
	case formSwitch:
		if kind := v.Value.Kind(); kind != 't' && kind != 'f' {
			return "", "true or false"
		}
	case formChoice:
		if isString(v) && k.alias != "" && text == k.alias {
			return k.aliased, ""
		}
		if !isString(v) || k.rank(text) < 0 {
			return "", oneOf(k.order)
		}
	case formText:
		if !isString(v) || strings.TrimSpace(text) == "" || strings.ContainsFunc(text, unicode.IsControl) {
			return "", "a string on one line"
		}
	case formRunner:
		if object := v.Clone(); v.Value.Kind() == '{' {
			object.Minimize()
			return object.String(), ""
		}
		if !isString(v) || strings.TrimSpace(text) == "" || strings.ContainsFunc(text, unicode.IsControl) ||
			text[0] == '{' {
			return "", "the name of a client, or an object"
		}
	case formNumber:
		least := max(1, k.least)
		n, err := strconv.Atoi(text)
		wrong := err != nil || n < least || isString(v)
		if k.most > 0 && (wrong || n > k.most) {
			return "", fmt.Sprintf("a whole number from %d to %d", least, k.most)
		}
		if wrong {
			return "", fmt.Sprintf("a whole number above %d", least-1)
		}
	case formDuration:
		if d, err := time.ParseDuration(text); err != nil || d <= 0 || !isString(v) {
			return "", `a duration such as "50s" or "2m"`
		}
	}
	return text, ""
}

func (p *parser) environment(v hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		p.wrongType("env", v, "an object of strings")
		return
	}
	for _, m := range object.Members {
		name, text := literal(m.Name), literal(m.Value)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(text, "\x00"):
			p.warn(m.Name, "env: %q cannot be an environment variable. It is skipped", name)
		case isString(m.Value):
			p.env[name] = p.entry(m.Value, text)
		default:
			p.wrongType("env."+name, m.Value, "a string")
		}
	}
}
