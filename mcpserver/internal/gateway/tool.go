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
		AlwaysLoad bool `json:"anthropic/alwaysLoad"`
	} `json:"_meta"`

	schema json.RawMessage // as shown to clients
	pin    string          // the fingerprint of its definition
}

func is(hint *bool) bool { return hint != nil && *hint }

// parseTool reads a definition. The error says why the tool is left out.
func parseTool(raw json.RawMessage) (*tool, error) {
	t := &tool{}
	if err := json.Unmarshal(raw, t); err != nil {
		var named struct{ Name any }
		_ = json.Unmarshal(raw, &named)
		return nil, fmt.Errorf("its tool %v is left out: cannot decode its definition: %v", named.Name, err)
	}
	if t.Name == "" || len(t.Name) > maxLine {
		return nil, fmt.Errorf("a tool is left out: its name is %q", cleanText(t.Name, 40))
	}
	err := checkDuplicates(json.NewDecoder(bytes.NewReader(raw)), 0)
	if err != nil {
		return nil, fmt.Errorf("its tool %q is left out: %w", cleanText(t.Name, 80), err)
	}
	t.pin = fingerprint(raw)
	if t.schema, err = shownSchema(t.InputSchema); err != nil {
		return nil, fmt.Errorf("its tool %q is left out: %w", cleanText(t.Name, 80), err)
	}
	return t, nil
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
			folded := name
			if depth < 2 { // decoded into struct fields, where encoding/json ignores case
				folded = strings.ToLower(strings.ToUpper(name))
			}
			if seen[folded] {
				return fmt.Errorf("its definition gives %q twice", cleanText(name, 80))
			}
			seen[folded] = true
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
				return fmt.Errorf("its schema refers to %q: only references that start with # are supported", cleanText(text, 80))
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

// tools returns the tools of a server by full name, and the problems of those that are left out.
func (s *server) tools() (all map[string]*tool, problems []string) {
	r := s.store.get()
	if r.Offer == nil || s.Refused != "" {
		return nil, nil
	}
	all = map[string]*tool{}
	twice := map[string]bool{}
	for _, raw := range r.Offer.Tools {
		t, err := parseTool(raw)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		full := "mcp__" + s.Name + "__" + cleanName(t.Name)
		if other := all[full]; other != nil {
			problems = append(problems, fmt.Sprintf("its tools %q and %q are left out: both become %s", cleanText(other.Name, 80), cleanText(t.Name, 80), full))
			twice[full] = true
			continue
		}
		all[full] = t
	}
	listed := maps.Clone(all) // a shortened name may be the name of another tool
	for _, full := range slices.Sorted(maps.Keys(all)) {
		cut := listedName(full)
		if other := listed[cut]; other != nil {
			problems = append(problems, fmt.Sprintf("its tools %q and %q are left out: both are listed as %s", cleanText(other.Name, 80), cleanText(all[full].Name, 80), cut))
			twice["mcp__"+s.Name+"__"+cleanName(other.Name)], twice[full] = true, true
		} else if cut != "" {
			listed[cut] = all[full]
		}
	}
	maps.DeleteFunc(all, func(name string, _ *tool) bool { return twice[name] })
	return all, problems
}

// rebuild creates the tools of all servers again, and calls cfg.Changed if they differ. configured means that the
// configuration has changed.
func (g *Gateway) rebuild(configured bool) {
	g.building.Lock()
	defer g.building.Unlock()
	var defs []*builtin.Def
	for _, s := range g.sorted() {
		all, problems := s.tools()
		s.note(problems, g)
		for _, full := range slices.Sorted(maps.Keys(all)) {
			defs = append(defs, g.def(s, full, all[full]))
		}
	}
	slices.SortFunc(defs, func(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) })
	was, known := g.tools.Swap(&defs), g.known
	prompts, resources := g.Digests()
	if g.known = fmt.Sprintln(prompts, resources, len(g.unknown())); configured || g.known != known || !slices.EqualFunc(*was, defs, sameDef) {
		g.cfg.Changed(g, configured)
	}
}

// sameDef reports whether clients see the same tool.
func sameDef(a, b *builtin.Def) bool {
	return a.Name == b.Name && a.Doc == b.Doc && a.Title == b.Title && string(a.RawSchema) == string(b.RawSchema) && a.Unlisted == b.Unlisted && a.Hints == b.Hints
}

// def returns the definition in this host of a tool of a server.
func (g *Gateway) def(s *server, full string, t *tool) *builtin.Def {
	withheld, _ := s.withheld("tool " + t.Name)
	hints := t.Annotations
	d := builtin.Def{
		Name: full, Listed: listedName(full), Server: s.Name, Title: cleanText(cmp.Or(t.Title, hints.Title), 200), Doc: cleanText(t.Description, maxDescription),
		RawSchema: t.schema, Limit: maxResultText, Unlisted: withheld, AlwaysLoad: s.AlwaysLoad || t.Meta.AlwaysLoad && s.Trust != Project,
		Hints: builtin.Hints{ReadOnly: is(hints.ReadOnlyHint), Additive: hints.DestructiveHint != nil && !*hints.DestructiveHint, Idempotent: is(hints.IdempotentHint), Closed: hints.OpenWorldHint != nil && !*hints.OpenWorldHint},
	}
	parallel := slices.Contains(s.Parallel, "*") || slices.Contains(s.Parallel, t.Name) || d.Hints.ReadOnly && s.trustsHints()
	return builtin.External(d, parallel, func(_ context.Context, env *builtin.Env, args json.RawMessage) (builtin.Plan, error) {
		if s.store.refresh() {
			g.work.Go(func() { g.rebuild(false) })
		}
		if withheld, since := s.withheld("tool " + t.Name); withheld {
			return builtin.Plan{}, fmt.Errorf("%s is withheld since %s: its definition is new or has changed, and was not reviewed. A person must review it with `toolhost mcp review %s` and accept it with `toolhost mcp accept %s`",
				full, since.Format(time.DateTime), s.Name, s.Name)
		}
		r := request{method: "tools/call", params: map[string]any{"name": t.Name, "arguments": args}, tool: t}
		r.idempotent = s.trustsHints() && (is(t.Annotations.ReadOnlyHint) || is(t.Annotations.IdempotentHint))
		return caller{g, env, s}.plan(guard.CallTool{Tool: t.Name}, r, func(raw json.RawMessage) (builtin.Result, error) { return s.result(env, raw) }), nil
	})
}

// withheld reports whether a definition is withheld, and since when.
func (s *server) withheld(name string) (bool, time.Time) {
	if !s.pins() {
		return false, time.Time{}
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	since, ok := s.store.now.Withheld[name]
	return ok, since
}
