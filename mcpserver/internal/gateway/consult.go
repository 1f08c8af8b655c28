package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// Scheme starts the URIs of resources of other servers. The name of the server, a slash, and the server's own URI
// follow.
const Scheme = "toolhost-mcp://"

// A Prompt is a prompt that a server offers, under the name by which clients get it.
type Prompt struct {
	mcp.Prompt
	g      *Gateway
	server *server
	own    definition
}

// A Resource is a resource that a server lists. Its URI starts with [Scheme].
type Resource struct {
	mcp.Resource
	Server string
}

// A Template is a template of resources. Its URI starts with [Scheme].
type Template struct {
	mcp.ResourceTemplate
	Server string
}

// address returns the URI by which clients name a resource of the server. Views keep theirs, which is in the
// definitions of tools.
func (s *server) address(uri string) string {
	if uri == "" || strings.HasPrefix(uri, viewScheme) {
		return uri
	}
	return Scheme + s.Name + "/" + uri
}

// offered decodes the definitions of a list that can be served, with the name replaced and all texts cleaned.
func offered[T any](list []definition, replace func(own string) string) (all []T, of []definition) {
	for _, def := range list {
		var d map[string]any
		if def.refused != nil || json.Unmarshal(def.raw, &d) != nil {
			continue
		}
		for field, v := range d {
			if field != "icons" { // data URLs, which may be long
				d[field] = cleaned(v)
			}
		}
		d[def.kind.key] = replace(def.name)
		var t T
		if json.Unmarshal(marshal(d), &t) == nil {
			all, of = append(all, t), append(of, def)
		}
	}
	return all, of
}

// cleaned applies [cleanText] to every string of a JSON value.
func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return cleanText(v, maxDescription)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = cleaned(v[k])
		}
	}
	return v
}

// Consults are the prompts and resources of the servers, as they are listed to a caller.
type Consults struct {
	g         *Gateway
	principal string
}

// Consults returns what the servers offer a caller besides tools.
func (g *Gateway) Consults(principal string) Consults { return Consults{g, principal} }

// Wait is [Gateway.Wait], and also waits for the resources that servers list to the caller, at most [firstList] in
// all. If only is not empty, it waits for the server of that name alone: another one that does not answer must not
// delay a request to it.
func (c Consults) Wait(ctx context.Context, only string) {
	ctx, cancel := context.WithTimeout(ctx, firstList)
	defer cancel()
	if only == "" || slices.ContainsFunc(c.g.unknown(), func(s *server) bool { return s.Name == only }) {
		c.g.Wait(ctx)
	}
	for _, s := range c.g.sorted() {
		r := s.store.get()
		if only != "" && s.Name != only || r.Offer == nil || !r.Offer.Readable || s.Refused != "" ||
			s.withholdsResources() || s.listing(c.principal) != nil {
			continue
		}
		select {
		case <-c.g.lookFor(s, c.principal):
		case <-ctx.Done():
			return
		}
	}
}

// ServerOf returns the name of the server in the URI of a resource, or "".
func ServerOf(uri string) string {
	rest, _ := strings.CutPrefix(uri, Scheme)
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// Prompts returns the prompts of all servers, ordered by server. Prompts of one server that get the same name are
// left out.
func (c Consults) Prompts() (all []Prompt) {
	for _, s := range c.g.sorted() {
		r := s.store.get()
		if r.Offer == nil || s.Refused != "" {
			continue
		}
		found, of := offered[mcp.Prompt](promptKind.read(r.Offer.Prompts),
			func(own string) string { return "mcp__" + s.Name + "__" + cleanName(own) })
		for i, p := range found {
			if withheld, _ := s.withheld(of[i].id(), of[i].pin); !withheld {
				all = append(all, Prompt{p, c.g, s, of[i]})
			}
		}
	}
	return all
}

// readable visits the servers whose resources can be read, with what they offer.
func (c Consults) readable(visit func(*server, *listing)) {
	for _, s := range c.g.sorted() {
		if s.Refused == "" && !s.withholdsResources() {
			if all := s.listing(c.principal); all != nil {
				visit(s, all)
			}
		}
	}
}

// Resources returns the resources that the servers list, by server.
func (c Consults) Resources() (all []Resource) {
	c.readable(func(s *server, o *listing) {
		found, _ := offered[mcp.Resource](resourceKind.read(o.Resources), s.address)
		for _, r := range found {
			all = append(all, Resource{r, s.Name})
		}
	})
	return all
}

// Templates returns the templates of resources that the servers list, by server.
func (c Consults) Templates() (all []Template) {
	c.readable(func(s *server, o *listing) {
		found, of := offered[mcp.ResourceTemplate](templateKind.read(o.Templates), s.address)
		for i, t := range found {
			if !c.withholds(s, of[i]) {
				all = append(all, Template{t, s.Name})
			}
		}
	})
	return all
}

// withholds reports whether a template or a skill is withheld from the caller. Only the list of the local user can be
// reviewed: one that only another caller sees is withheld if it differs from the accepted one of that name.
func (c Consults) withholds(s *server, d definition) bool {
	withheld, _ := s.withheld(d.id(), d.pin)
	if _, known := s.store.accepted(d.id()); !known && c.principal != localPrincipal && s.sharing() != "host" {
		return false
	}
	return withheld
}

// Digests returns hashes of the prompts, and of the resources, templates and skills, that any client sees. They are
// empty if there are none.
func (g *Gateway) Digests() (prompts, resources string) {
	if all := g.Consults(localPrincipal).Prompts(); len(all) > 0 {
		prompts = fingerprint(marshal(all))
	}
	var seen []any
	for _, principal := range g.listed() {
		c := g.Consults(principal)
		if all, templates, skills := c.Resources(), c.Templates(), c.Skills(); len(all)+len(templates)+len(skills) > 0 {
			seen = append(seen, principal, all, templates, skills)
		}
	}
	if seen != nil {
		resources = fingerprint(marshal(seen))
	}
	return prompts, resources
}

// Def returns a tool that gets the prompt, so that the call goes through the pipeline. Its result has a
// [mcp.GetPromptResult] in Passed.
func (p Prompt) Def() *builtin.Def {
	return builtin.External(builtin.Def{Name: p.Name, Server: p.server.Name}, true, func(_ context.Context,
		env *builtin.Env, args json.RawMessage) (builtin.Plan, error) {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(args, &given); err != nil {
			return builtin.Plan{}, err
		}
		listed := len(given) == 0 || p.server.Trust != Project // arguments can send data of the caller to the server
		r := request{method: "prompts/get", params: map[string]any{"name": p.own.name, "arguments": args},
			idempotent: p.server.trustsHints(), id: p.own.id(), pin: p.own.pin, parallel: true}
		return caller{p.g, env, p.server}.plan(guard.CallTool{Tool: p.own.name, Reads: "prompt", Listed: listed}, r,
			p.server.prompt), nil
	})
}

// Read returns the plan to read a resource. A uri that starts with [Scheme] contains the server, otherwise server
// names it. The result has the [mcp.ResourceContents] in Passed.
func (c Consults) Read(env *builtin.Env, server, uri string) (builtin.Plan, error) {
	if rest, ok := strings.CutPrefix(uri, Scheme); ok {
		name, own, _ := strings.Cut(rest, "/")
		if server != "" && server != name {
			return builtin.Plan{}, fmt.Errorf("uri contains the server %s, but server is %q: omit server",
				cleanText(name, 80), cleanText(server, 80))
		}
		server, uri = name, own
	}
	if server == "" && strings.HasPrefix(uri, viewScheme) {
		var err error
		if server, err = c.serverOfView(uri); err != nil {
			return builtin.Plan{}, err
		}
	}
	if server == "" {
		return builtin.Plan{}, fmt.Errorf("server is missing: give the server of the resource, or a uri that starts with %s",
			Scheme)
	}
	if uri == "" {
		return builtin.Plan{}, errors.New("uri is missing: ListMcpResources lists the URIs of resources")
	}
	s, err := c.g.server(server)
	if err != nil {
		return builtin.Plan{}, err
	}
	if s.withholdsResources() {
		return builtin.Plan{}, fmt.Errorf("the resources of the server %s are withheld until a person has reviewed them: "+
			"`toolhost mcp review %s`, then `toolhost mcp accept %s`", s.Name, s.Name, s.Name)
	}
	digest, err := c.skillFile(s, uri)
	if err != nil {
		return builtin.Plan{}, err
	}
	read := s.contents
	if digest != "" {
		read = sameContent(s.Name, uri, digest, read)
	}
	r := request{method: "resources/read", params: map[string]any{"uri": uri}, idempotent: s.trustsHints(),
		id: resourcesID, pin: fingerprint(offersResources), parallel: true}
	listed := digest != "" || s.listsTo(c.principal, uri) || s.shows(uri)
	return caller{c.g, env, s}.plan(guard.CallTool{Tool: uri, Reads: "resource", Listed: listed}, r, read), nil
}

// serverOfView returns the server that a view belongs to: one of its tools shows it, or it is listed as a resource.
func (c Consults) serverOfView(uri string) (found string, err error) {
	for _, s := range c.g.sorted() {
		if s.Refused != "" || !s.shows(uri) && (s.withholdsResources() || !s.listsTo(c.principal, uri)) {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("the servers %s and %s both have %s: give the server", found, s.Name,
				cleanText(uri, maxLine))
		}
		found = s.Name
	}
	return found, nil
}

// shows reports whether an accepted tool of the server shows a view.
func (s *server) shows(uri string) bool {
	if !strings.HasPrefix(uri, viewScheme) {
		return false
	}
	for _, t := range s.tools().served {
		if withheld, _ := s.withheld(toolKind.word+" "+t.Name, t.pin); !withheld && t.view() == uri {
			return true
		}
	}
	return false
}

// plan returns the plan of a request to the server with this effect.
func (c caller) plan(e guard.CallTool, r request, read reader) builtin.Plan {
	e.Server = c.s.Name
	return builtin.Plan{
		Intent: guard.Intent{Effects: []guard.Effect{e}},
		Run: func(ctx context.Context) (builtin.Result, error) {
			return c.run(ctx, cmp.Or(e.Reads, "the call of")+" "+e.Tool+" of the server "+e.Server, r, read)
		},
	}
}

// listsTo reports whether the server lists a resource to a caller.
func (s *server) listsTo(principal, uri string) bool {
	all := s.listing(principal)
	return all != nil && slices.ContainsFunc(resourceKind.read(all.Resources),
		func(d definition) bool { return d.refused == nil && d.name == uri })
}

// prompt converts a response to prompts/get.
func (s *server) prompt(ctx context.Context, env *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
	var r struct {
		Description string
		Messages    []struct {
			Role    mcp.Role
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return builtin.Result{}, fmt.Errorf("cannot decode the prompt of the server %s: %w", s.Name, err)
	}
	out, attached := &mcp.GetPromptResult{Description: cleanText(r.Description, maxDescription)}, env.Attachments()
	var texts []string
	for _, m := range r.Messages {
		image, text := s.content(ctx, attached, m.Content)
		content, err := mcp.UnmarshalContent(s.passed(m.Content, image, text))
		if err != nil { // an unknown type of content
			content = mcp.NewTextContent(text)
		}
		if m.Role != mcp.RoleAssistant {
			m.Role = mcp.RoleUser
		}
		texts, out.Messages = append(texts, text), append(out.Messages, mcp.NewPromptMessage(m.Role, content))
	}
	return builtin.Result{Text: strings.Join(texts, "\n"), Passed: out}, nil
}

// passed returns content as it is passed on to clients: with the URI of its resource that clients use, and with the
// image or text that was made of its binary content.
func (s *server) passed(raw json.RawMessage, image *builtin.Image, text string) json.RawMessage {
	var content map[string]any
	if json.Unmarshal(raw, &content) != nil {
		return raw
	}
	inner, _ := content["resource"].(map[string]any)
	for _, m := range []map[string]any{content, inner} {
		if uri, ok := m["uri"].(string); ok {
			m["uri"] = s.address(uri)
		}
	}
	switch {
	case inner != nil:
		replaceBlob(inner, image, text)
	case content["type"] == "image" && image != nil:
		content["data"], content["mimeType"] = image.Base64(), image.MIME
	case content["type"] == "image":
		content = map[string]any{"type": "text", "text": text}
	}
	return marshal(content)
}

// replaceBlob replaces the blob of a resource that clients show as an image by the image or text that was made of it.
// Other blobs are passed on unchanged.
func replaceBlob(resource map[string]any, image *builtin.Image, text string) {
	if _, ok := resource["blob"].(string); !ok {
		return
	}
	declared, _ := resource["mimeType"].(string)
	if image != nil {
		resource["blob"], resource["mimeType"] = image.Base64(), image.MIME
	} else if declared = strings.ToLower(strings.TrimSpace(declared)); strings.HasPrefix(declared, "image/") {
		delete(resource, "blob")
		resource["text"], resource["mimeType"] = text, "text/plain"
	}
}

// contents converts a response to resources/read.
func (s *server) contents(ctx context.Context, env *builtin.Env, raw json.RawMessage) (result builtin.Result,
	err error) {
	all, attached := []mcp.ResourceContents{}, env.Attachments()
	var r struct{ Contents []map[string]any }
	err = json.Unmarshal(raw, &r)
	var texts []string
	for _, c := range r.Contents {
		image, text := s.content(ctx, attached, marshal(map[string]any{"type": "resource", "resource": c}))
		if image != nil {
			result.Images = append(result.Images, *image)
		}
		if image == nil || text != "" {
			texts = append(texts, text)
		}
		uri, _ := c["uri"].(string)
		c["uri"] = s.address(uri)
		replaceBlob(c, image, text)
		one, wrong := mcp.ParseResourceContents(c)
		all, err = append(all, one), cmp.Or(err, wrong)
	}
	if err != nil {
		return builtin.Result{}, fmt.Errorf("cannot decode the resource of the server %s: %w", s.Name, err)
	}
	if result.Text = strings.Join(texts, "\n"); len(all) == 0 {
		result.Text = "(no content)"
	}
	result.Passed = all
	return result, nil
}
