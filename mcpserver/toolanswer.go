package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/alias"
)

// Limits of what a search shows, in characters.
const (
	maxFound      = 30_000 // of an answer
	maxFoundDoc   = 600    // of one tool's description
	maxFoundNames = 3000   // of the names that are listed without descriptions
	maxDown       = 300    // of the reason why a server cannot be called
)

// A toolAnswer answers searches.
type toolAnswer struct {
	*snapshot
	visible func(*builtin.Def) bool
	room    int // left for the answer, in characters
}

// answer returns the result of a search.
func (a toolAnswer) answer(q toolQuery) string {
	if q.selected != nil {
		return a.selected(q.selected)
	}
	var found []toolEntry
	for _, e := range a.index().find(q.text, q.required) {
		if len(found) < q.most && a.sees(e) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return a.nothing(q.text)
	}
	return a.show(found, "")
}

// sees reports whether the caller may know of an entry. For a server without known tools it reports whether one of its
// tools could be called.
func (a toolAnswer) sees(e toolEntry) bool {
	return a.visible(cmp.Or(e.def, &builtin.Def{Name: e.name}))
}

// maxUnknown is how many unknown names get similar ones.
const maxUnknown = 10

// selected returns the definitions of tools that were asked for by name, in that order.
func (a toolAnswer) selected(names []string) string {
	var found []toolEntry
	var unknown strings.Builder
	missing := 0
	for _, name := range names {
		name = strings.TrimPrefix(name, ownPrefix)
		r, ok := a.byName[name]
		if !ok {
			r, ok = a.byName[alias.Tool(name)]
		}
		if ok && a.visible(r.def) {
			found = append(found, toolEntry{name: r.def.Name, def: r.def, server: a.server(r.def.Server)})
			continue
		}
		if missing++; missing > maxUnknown {
			continue
		}
		fmt.Fprintf(&unknown, "There is no tool %s.", clippedTo(Sanitize(name), maxNear))
		if near := a.nearest(name, maxNearest, a.visible); len(near) > 0 {
			fmt.Fprintf(&unknown, " Similar: %s.", strings.Join(near, ", "))
		}
		unknown.WriteString("\n")
	}
	if missing > maxUnknown {
		fmt.Fprintf(&unknown, "There are no tools of %d further names.\n", missing-maxUnknown)
	}
	return a.show(found, unknown.String())
}

// server returns the server with the given name.
func (s *snapshot) server(name string) foreignServer {
	i := slices.IndexFunc(s.Servers, func(o foreignServer) bool { return o.Name == name })
	if i < 0 {
		return foreignServer{}
	}
	return s.Servers[i]
}

// show returns the definitions of the found tools, only names once the space is used up, and the text last at the end.
func (a toolAnswer) show(found []toolEntry, last string) string {
	var b strings.Builder
	left := a.room - utf8.RuneCountInString(last)
	var rest []string
	for i, e := range found {
		text := e.describe() + "\n"
		reserve := 0
		if i < len(found)-1 {
			reserve = maxFoundNames
		}
		if n := utf8.RuneCountInString(text); rest != nil || n > left-min(reserve, left/4) {
			rest = append(rest, e.name)
		} else {
			b.WriteString(text)
			left -= n
		}
	}
	if rest != nil {
		text := "Also found, too long to show here (select:NAME shows one): " + strings.Join(rest, ", ")
		if b.Len() == 0 {
			text = "The definition of " + rest[0] + " is too long to show. Its parameters: " +
				found[0].parameters() + "\n"
			if len(rest) > 1 {
				text += "Also found: " + strings.Join(rest[1:], ", ")
			}
		}
		b.WriteString(clippedTo(text, max(left, 1)) + "\n")
	}
	return b.String() + last
}

// describe returns what a model must know to call the tool.
func (e toolEntry) describe() string {
	var b strings.Builder
	if e.def == nil {
		fmt.Fprintf(&b, "server %s: none of its tools is known.", e.server.Name)
	} else {
		b.WriteString(e.name)
	}
	if e.server.Down != "" {
		fmt.Fprintf(&b, "\n[The server %s cannot be called now: %s]", e.server.Name,
			clippedTo(singleLine(e.server.Down), maxDown))
	}
	if e.def == nil {
		return b.String() + "\n"
	}
	schema, name := e.schema(), cmp.Or(e.def.Listed, e.name)
	if doc := strings.TrimSpace(e.def.Doc); doc != "" {
		fmt.Fprintf(&b, "\n%s", clippedTo(doc, maxFoundDoc))
	}
	fmt.Fprintf(&b, "\nschema: %s\n", compacted(schema))
	arguments := exampleArguments(schema)
	if e.def.Server == "" {
		fmt.Fprintf(&b, "call it by its name: %s %s\n", name, arguments)
		return b.String()
	}
	call, _ := json.Marshal(name) // a string always encodes
	fmt.Fprintf(&b, `%s {"name": %s, "arguments": %s}`+"\n", toolCallName, call, arguments)
	return b.String()
}

// schema returns the input schema of a tool.
func (e toolEntry) schema() json.RawMessage {
	if e.def.Schema == nil {
		return e.def.RawSchema
	}
	raw, _ := json.Marshal(e.def.Schema) // cannot fail: the list of tools was built from it
	return raw
}

// parameters returns the names of the parameters, for a tool with a schema that is too long to show.
func (e toolEntry) parameters() string {
	if e.def == nil {
		return ""
	}
	return strings.Join(strings.Fields(parameterNames(e.def)), ", ")
}

// exampleArguments returns the required arguments of a schema, with placeholders of the right types for values that
// only the caller knows.
func exampleArguments(raw json.RawMessage) string {
	var schema struct {
		Required   []string
		Properties map[string]struct {
			Type  any
			Enum  []json.RawMessage
			Const json.RawMessage
		}
	}
	_ = json.Unmarshal(raw, &schema) // a schema that cannot be decoded has no required arguments
	var all []string
	for _, name := range schema.Required {
		p, value := schema.Properties[name], json.RawMessage(`"…"`)
		switch {
		case p.Const != nil:
			value = p.Const
		case len(p.Enum) > 0:
			value = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			value = json.RawMessage("0")
		case p.Type == "boolean":
			value = json.RawMessage("false")
		case p.Type == "array":
			value = json.RawMessage("[]")
		case p.Type == "object":
			value = json.RawMessage("{}")
		}
		key, _ := json.Marshal(name) // a string always encodes
		all = append(all, fmt.Sprintf("%s: %s", key, compacted(value)))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// nothing returns the answer to a query that found nothing. It says what there is.
func (a toolAnswer) nothing(query string) string {
	var b strings.Builder
	b.WriteString("No tool was found.")
	counts := a.counts(a.visible)
	if len(counts) > 0 {
		fmt.Fprintf(&b, " Servers: %s.", clippedTo(strings.Join(counts, ", "), maxFoundNames))
	} else {
		b.WriteString(" No other server is configured.")
	}
	if near := a.similar(query); len(near) > 0 {
		fmt.Fprintf(&b, "\nThe nearest names: %s.", strings.Join(near, ", "))
	}
	return b.String() + "\n"
}

// counts returns one entry per server, by name, with the number of its tools or the reason why it cannot be called.
func (s *snapshot) counts(visible func(*builtin.Def) bool) (counts []string) {
	for _, server := range s.summaries(visible) {
		count := server.count()
		if server.Down != "" {
			count += ", cannot be called now: " + clippedTo(singleLine(server.Down), maxPurpose)
		}
		counts = append(counts, fmt.Sprintf("%s (%s)", server.Name, count))
	}
	return counts
}

// A serverSummary is a server with those of its tools that a caller may know of.
type serverSummary struct {
	foreignServer
	tools []string // the tool names without the server prefix
}

func (s serverSummary) count() string {
	if len(s.tools) == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", len(s.tools))
}

// summaries returns the servers that a caller may know of, by name.
func (s *snapshot) summaries(visible func(*builtin.Def) bool) (all []serverSummary) {
	tools, hidden := map[string][]string{}, map[string]bool{}
	for _, d := range s.Tools {
		if visible(d) {
			tools[d.Server] = append(tools[d.Server], strings.TrimPrefix(d.Name, "mcp__"+d.Server+"__"))
		}
		hidden[d.Server] = true
	}
	for _, server := range s.Servers {
		if tools[server.Name] != nil || !hidden[server.Name] &&
			visible(&builtin.Def{Name: "mcp__" + server.Name + "__"}) {
			slices.Sort(tools[server.Name])
			all = append(all, serverSummary{server, tools[server.Name]})
		}
	}
	slices.SortFunc(all, func(a, b serverSummary) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// similar returns the names nearest to a query that found nothing.
func (a toolAnswer) similar(query string) []string {
	query = clippedTo(strings.ToLower(query), maxNear)
	distances := map[string]int{}
	var names []string
	for _, d := range a.Tools {
		if a.visible(d) {
			_, short, _ := strings.Cut(strings.TrimPrefix(d.Name, "mcp__"), "__")
			names, distances[d.Name] = append(names, d.Name), distance(query, strings.ToLower(short))
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(distances[a]-distances[b], strings.Compare(a, b)) })
	return names[:min(len(names), maxNearest)]
}

// Bounds of the description of ToolSearch, in bytes.
const (
	maxSearchDoc = 2000
	maxPurpose   = 100
)

const toolSearchDoc = `Finds tools of the other MCP servers that are configured here. Most of their tools are not in your list: search before you say that something cannot be done, or do it in a roundabout way. What is found is called with ToolCall.
query: words for what the tool should do ("create an issue"); +word: its name or server must contain it; select:NAME,NAME: exactly these.`

// searchDoc returns the description of ToolSearch, with the servers and, while there is space, the names of their
// tools. It changes only if the configuration or the offer of a server changes.
func (s *snapshot) searchDoc(visible func(*builtin.Def) bool) string {
	servers := s.summaries(visible)
	if len(servers) == 0 {
		return toolSearchDoc + "\nNo other server is configured."
	}
	for _, detail := range []int{2, 1, 0} {
		doc := toolSearchDoc + "\nServers:"
		for _, server := range servers {
			doc += server.line(detail)
		}
		if len(doc) <= maxSearchDoc {
			return doc
		}
	}
	doc, rest := toolSearchDoc+"\nServers:", len(servers)
	for _, server := range servers {
		if line := server.line(0); len(doc)+len(line)+len("\nand 1000000 more") <= maxSearchDoc {
			doc, rest = doc+line, rest-1
		}
	}
	return fmt.Sprintf("%s\nand %d more", doc, rest)
}

// line returns the server for the description. Detail 0 has its name and tool count, 1 adds its purpose, 2 adds the
// names of its tools.
func (s serverSummary) line(detail int) string {
	line := fmt.Sprintf("\n%s (%s)", s.Name, s.count())
	if purpose := clippedTo(strings.TrimLeft(singleLine(s.Purpose), "# "), maxPurpose); detail > 0 && purpose != "" {
		line += ": " + purpose
	}
	if detail > 1 && len(s.tools) > 0 {
		line += " [" + strings.Join(s.tools, " ") + "]"
	}
	return line
}

// singleLine returns text from another server as one line.
func singleLine(s string) string { return strings.Join(strings.Fields(Sanitize(s)), " ") }

// compacted returns JSON on one line.
func compacted(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// clippedTo returns the first n characters of a text, marked as cut if it is longer.
func clippedTo(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}
