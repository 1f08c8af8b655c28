package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// A kind is a kind of definitions that servers list.
type kind struct {
	word string // in messages, and in the id of a definition
	key  string // the member with the name
	most int    // bytes of a name
}

// The kinds of definitions.
var (
	toolKind     = kind{"tool", "name", maxLine}
	promptKind   = kind{"prompt", "name", maxDescription}
	resourceKind = kind{"resource", "uri", maxDescription}
	templateKind = kind{"template", "uriTemplate", maxDescription}
	skillKind    = kind{"skill", "uri", maxDescription}
)

// A definition is one element of a list of a server.
type definition struct {
	kind kind
	name string // as the server uses it
	raw  json.RawMessage
	pin  string // the fingerprint of raw
	tool *tool  // set for a tool
	// refused says why the definition is not served: it is not valid, or its name occurs twice in the list.
	refused error
}

// id returns the name of the definition in a record: "tool NAME".
func (d definition) id() string { return d.kind.word + " " + d.name }

// read decodes a list. If several definitions have names that are equal for clients, all of them are refused,
// including invalid ones: only the server knows which of them a call would reach.
func (k kind) read(list []json.RawMessage) []definition {
	all, same := make([]definition, len(list)), map[string][]string{}
	for i, raw := range list {
		all[i] = k.decode(raw)
		for _, name := range namesIn(raw, k.key) {
			same[k.shown(name)] = append(same[k.shown(name)], cleanText(name, 80))
		}
	}
	for i, d := range all {
		switch names := same[k.shown(d.name)]; {
		case d.name == "" || len(names) < 2:
		case names[0] == names[1]:
			all[i].refused = fmt.Errorf("its %s %q is left out: the list has %d of that name", k.word,
				names[0], len(names))
		default:
			all[i].refused = fmt.Errorf("its %ss %q and %q are left out: both become %s",
				k.word, names[0], names[1], cleanText(k.shown(d.name), 80))
		}
	}
	return all
}

// shown returns the name as clients get it.
func (k kind) shown(name string) string {
	switch {
	case k == skillKind:
		return skillPath(name)
	case k.key == "name":
		return cleanName(name)
	}
	return name
}

// decode checks one definition.
func (k kind) decode(raw json.RawMessage) definition {
	d := definition{kind: k, raw: raw}
	var members map[string]json.RawMessage
	err := json.Unmarshal(raw, &members)
	if err == nil {
		err = json.Unmarshal(members[k.key], &d.name)
	}
	if err != nil {
		d.refused = fmt.Errorf("a %s is left out: cannot decode its definition: %w", k.word, err)
		return d
	}
	if d.name == "" || len(d.name) > k.most || k.key != "name" && d.name != cleanText(d.name, k.most) {
		d.refused = fmt.Errorf("a %s is left out: its %s is %q", k.word, k.key, cleanText(d.name, 40))
		return d
	}
	if err = checkDuplicates(json.NewDecoder(bytes.NewReader(raw)), 0); err == nil {
		err = d.check()
	}
	if d.pin = fingerprint(raw); err != nil {
		d.refused = fmt.Errorf("its %s %q is left out: %w", k.word, cleanText(d.name, 80), err)
	}
	return d
}

// check returns an error if the definition cannot be served.
func (d *definition) check() (err error) {
	switch d.kind {
	case toolKind:
		if d.tool, err = parseTool(d.raw); err == nil {
			d.tool.pin = fingerprint(d.raw)
		}
	case promptKind:
		err = json.Unmarshal(d.raw, &mcp.Prompt{})
	case resourceKind:
		err = json.Unmarshal(d.raw, &mcp.Resource{})
	case templateKind:
		err = json.Unmarshal(d.raw, &mcp.ResourceTemplate{})
	case skillKind:
		err = checkSkill(d.raw)
	}
	return err
}

// namesIn returns the different strings that a definition gives as its name, in members whose names differ only in
// case too.
func namesIn(raw json.RawMessage, key string) (names []string) {
	for member, value := range jsontext.Members(raw) {
		var name *string
		if folded(member) == folded(key) && json.Unmarshal(value, &name) == nil && name != nil &&
			!slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	return names
}

// folded returns the same text for names that encoding/json takes for one.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// served returns the fingerprints of the definitions of an offer that can be served, by id.
func (o *offer) served() map[string]string {
	all := map[string]string{}
	for id, raw := range o.definitions() {
		all[id] = fingerprint(raw)
	}
	return all
}

// An errWithheld is the error of a request whose definition is not the accepted one.
type errWithheld struct{ text string }

func (e *errWithheld) Error() string { return e.text }

func withheldErrorf(format string, args ...any) error {
	return &errWithheld{fmt.Sprintf(format, args...)}
}

// permits returns an error unless the server of this session lists the definition that a request relies on, and a
// person has accepted it. It is called when the session has fetched the lists and before the request is sent.
func (s *session) permits(r request) error {
	if r.id == "" || !s.u.srv.pins() {
		return nil
	}
	s.mu.Lock()
	now, listed := s.served[r.id]
	s.mu.Unlock()
	name := s.u.srv.Name
	if !listed {
		return withheldErrorf("the request was not sent: the server %s does not list the %s any more, or lists it twice. "+
			"`toolhost mcp list --json` shows the problems of the server", name, cleanText(r.id, maxLine))
	}
	if err := s.u.srv.review(r.id, now); err != nil {
		return err
	}
	if now != r.pin {
		return withheldErrorf("the request was not sent: the server %s has changed the definition of the %s since it was "+
			"listed. "+
			"List it again, then repeat the call", name, cleanText(r.id, maxLine))
	}
	return nil
}

// review returns an error if a definition with this id and fingerprint is withheld.
func (s *server) review(id, pin string) error {
	withheld, since := s.withheld(id, pin)
	if !withheld {
		return nil
	}
	return withheldErrorf("the %s of the server %s is withheld since %s: it is new or has changed, and was not reviewed. "+
		"A person must review it with `toolhost mcp review %s` and accept it with `toolhost mcp accept %s`",
		cleanText(id, maxLine), s.Name, since.Format(time.DateTime), s.Name, s.Name)
}
