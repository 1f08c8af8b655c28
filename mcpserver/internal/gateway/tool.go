package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
)

// A tool is one that a server offers.
type tool struct {
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage
	Annotations struct {
		Title           string
		ReadOnlyHint    *bool
		DestructiveHint *bool
		IdempotentHint  *bool
		OpenWorldHint   *bool
	}
	Meta struct {
		AlwaysLoad bool            `json:"anthropic/alwaysLoad"`
		UI         json.RawMessage `json:"ui"`
	} `json:"_meta"`

	schema json.RawMessage // as shown to clients
	pin    string          // the fingerprint of its definition
}

func is(hint *bool) bool { return hint != nil && *hint }

// parseTool reads a definition.
func parseTool(raw json.RawMessage) (*tool, error) {
	t := &tool{}
	err := json.Unmarshal(raw, t)
	if err != nil {
		return nil, fmt.Errorf("cannot decode its definition: %w", err)
	}
	t.schema, err = shownSchema(t.InputSchema)
	return t, err
}

// viewScheme begins the URIs of views, which clients of MCP Apps read as resources.
const viewScheme = "ui://"

// view returns the URI of the view of a tool, or "".
func (t *tool) view() string {
	var ui struct{ ResourceURI string }
	if len(t.Meta.UI) > maxSchema || json.Unmarshal(t.Meta.UI, &ui) != nil ||
		!strings.HasPrefix(ui.ResourceURI, viewScheme) || ui.ResourceURI != cleanText(ui.ResourceURI, maxDescription) {
		return ""
	}
	return ui.ResourceURI
}

// checkDuplicates refuses a definition with a duplicate member: which one is used depends on the order, which the
// fingerprint does not cover. At the two upper levels, names that differ only in case are duplicates.
func checkDuplicates(d *json.Decoder, depth int) error {
	token, err := d.Token()
	open, ok := token.(json.Delim)
	if err != nil || !ok {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			known := name
			if depth < 2 { // decoded into struct fields, where encoding/json ignores case
				known = folded(name)
			}
			if seen[known] {
				return fmt.Errorf("its definition gives %q twice", cleanText(name, 80))
			}
			seen[known] = true
		}
		if err := checkDuplicates(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing delimiter
	return err
}

// shownSchema checks a schema and cleans its texts.
func shownSchema(raw json.RawMessage) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, the limit is %d", len(raw), maxSchema)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("cannot decode its schema: %w", err)
	}
	top, ok := v.(map[string]any)
	if !ok || top["type"] != nil && top["type"] != "object" {
		return nil, fmt.Errorf(`its schema is not an object schema: "type": "object" is expected`)
	}
	changed := top["type"] == nil
	if changed {
		top["type"] = "object"
	}
	if err := walkSchema(top, 0, &changed); err != nil {
		return nil, err
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(top)
}

func walkSchema(v any, depth int, changed *bool) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("its schema is nested more than %d levels deep", maxSchemaDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			text, isText := value.(string)
			switch {
			case isText && key == "$ref" && !strings.HasPrefix(text, "#"):
				return fmt.Errorf("its schema refers to %q: only references that start with # are supported",
					cleanText(text, 80))
			case isText && (key == "description" || key == "title"):
				if clean := cleanText(text, maxDescription); clean != text {
					v[key], *changed = clean, true
				}
			default:
				if err := walkSchema(value, depth+1, changed); err != nil {
					return err
				}
			}
		}
	case []any:
		for _, value := range v {
			if err := walkSchema(value, depth+1, changed); err != nil {
				return err
			}
		}
	}
	return nil
}

// canonical returns a JSON text with sorted keys and unchanged numbers.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	return marshal(v)
}

// readable returns a definition as it is shown for a review.
func readable(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, canonical(raw), "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// skeleton returns the same string for names that look alike.
func skeleton(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKD.String(name))
}

// A toolList holds the tools of a server by full name: those that are served, and why others are left out.
type toolList struct {
	served  map[string]*tool
	leftOut map[string]string
	// problems has the reasons of leftOut, and those of definitions without a usable name.
	problems []string
}

// tools returns the tools of a server.
func (s *server) tools() toolList {
	list := toolList{map[string]*tool{}, map[string]string{}, nil}
	r := s.store.get()
	if r.Offer == nil || s.Refused != "" {
		return list
	}
	full := func(name string) string { return "mcp__" + s.Name + "__" + cleanName(name) }
	for _, d := range toolKind.read(r.Offer.Tools) {
		if d.refused == nil {
			list.served[full(d.name)] = d.tool
			continue
		}
		if d.pin != "" {
			list.leftOut[full(d.name)] = d.refused.Error()
		}
		list.problems = append(list.problems, d.refused.Error())
	}
	listed := maps.Clone(list.served) // a shortened name may be the name of another tool
	for _, name := range slices.Sorted(maps.Keys(list.served)) {
		t, cut := list.served[name], alias.Listed(name)
		if other := listed[cut]; other != nil {
			why := fmt.Sprintf("its tools %q and %q are left out: both are listed as %s",
				cleanText(other.Name, 80), cleanText(t.Name, 80), cut)
			list.leftOut[full(other.Name)], list.leftOut[name] = why, why
			list.problems = append(list.problems, why)
		} else if cut != "" {
			listed[cut] = t
		}
	}
	maps.DeleteFunc(list.served, func(name string, _ *tool) bool { return list.leftOut[name] != "" })
	return list
}

// problems returns why definitions of the server are left out, those of its tools first.
func (s *server) problems(tools toolList) []string {
	all, r := tools.problems, s.store.get()
	if r.Offer == nil || s.Refused != "" {
		return all
	}
	lists := [][]definition{promptKind.read(r.Offer.Prompts)}
	if r.Offer.Own != nil {
		own := r.Offer.Own
		lists = append(lists, resourceKind.read(own.Resources), templateKind.read(own.Templates),
			skillKind.read(own.Skills))
	}
	for _, d := range slices.Concat(lists...) {
		if d.refused != nil {
			all = append(all, d.refused.Error())
		}
	}
	return slices.Compact(all)
}

// rebuild creates the tools of all servers again, and calls cfg.Changed if they differ. configured means that the
// configuration has changed.
func (g *Gateway) rebuild(configured bool) {
	g.building.Lock()
	defer g.building.Unlock()
	var defs []*builtin.Def
	for _, s := range g.sorted() {
		list := s.tools()
		s.note(s.problems(list), g)
		for full, t := range list.served {
			defs = append(defs, g.def(s, full, t))
		}
		for full, why := range list.leftOut {
			defs = append(defs, leftOut(s, full, why))
		}
	}
	slices.SortFunc(defs, func(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) })
	was, known := g.tools.Swap(&defs), g.known
	prompts, resources := g.Digests()
	if g.known = fmt.Sprintln(prompts, resources, len(g.unknown())); configured || g.known != known ||
		!slices.EqualFunc(*was, defs, sameDef) {
		g.cfg.Changed(g, configured)
	}
}

// leftOut returns a tool that is not listed and whose calls say why it is left out.
func leftOut(s *server, full, why string) *builtin.Def {
	d := builtin.Def{Name: full, Server: s.Name, RawSchema: json.RawMessage(`{"type":"object"}`), Unlisted: true}
	return builtin.External(d, true, func(context.Context, *builtin.Env, json.RawMessage) (builtin.Plan, error) {
		return builtin.Plan{}, fmt.Errorf("%s of the server %s is withheld: %s", full, s.Name, why)
	})
}

// sameDef reports whether clients see the same tool.
func sameDef(a, b *builtin.Def) bool {
	return a.Name == b.Name && a.Doc == b.Doc && a.Title == b.Title && string(a.RawSchema) == string(b.RawSchema) &&
		string(a.View) == string(b.View) && a.Unlisted == b.Unlisted && a.Hints == b.Hints
}

// def returns the definition in this host of a tool of a server.
func (g *Gateway) def(s *server, full string, t *tool) *builtin.Def {
	id := toolKind.word + " " + t.Name
	withheld, _ := s.withheld(id, t.pin)
	hints := t.Annotations
	d := builtin.Def{
		Name: full, Listed: alias.Listed(full), Server: s.Name, Title: cleanText(cmp.Or(t.Title, hints.Title), 200),
		Doc:       cleanText(t.Description, maxDescription),
		RawSchema: t.schema, Limit: maxResultText, Unlisted: withheld, AlwaysLoad: s.AlwaysLoad || t.Meta.AlwaysLoad &&
			s.Trust != Project,
		Hints: builtin.Hints{ReadOnly: is(hints.ReadOnlyHint), Additive: hints.DestructiveHint != nil &&
			!*hints.DestructiveHint, Idempotent: is(hints.IdempotentHint), Closed: hints.OpenWorldHint != nil &&
			!*hints.OpenWorldHint},
	}
	if t.view() != "" {
		d.View = t.Meta.UI
	}
	parallel := slices.Contains(s.Parallel, "*") || slices.Contains(s.Parallel, t.Name) || d.Hints.ReadOnly &&
		s.trustsHints()
	return builtin.External(d, parallel, func(_ context.Context, env *builtin.Env,
		args json.RawMessage) (builtin.Plan, error) {
		if s.store.refresh() {
			g.work.Go(func() { g.rebuild(false) })
		}
		if err := s.review(id, t.pin); err != nil {
			return builtin.Plan{}, err
		}
		r := request{method: "tools/call", params: map[string]any{"name": t.Name, "arguments": args}, tool: t, id: id,
			pin: t.pin, parallel: parallel}
		r.idempotent = s.trustsHints() && (is(t.Annotations.ReadOnlyHint) || is(t.Annotations.IdempotentHint))
		return caller{g, env, s}.plan(guard.CallTool{Tool: t.Name}, r, s.result), nil
	})
}

// withheld reports whether a definition with this id and fingerprint is withheld, and since when.
func (s *server) withheld(id, pin string) (bool, time.Time) {
	if accepted, ok := s.store.accepted(id); !s.pins() || ok && accepted == pin {
		return false, time.Time{}
	}
	r := s.store.get()
	since := r.Withheld[id]
	if since.IsZero() && r.Offer != nil {
		since = r.Offer.Since
	}
	return true, since
}

// withholdsResources reports whether the resources of the server are withheld.
func (s *server) withholdsResources() bool {
	withheld, _ := s.withheld(resourcesID, fingerprint(offersResources))
	return withheld
}
