package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// The Skills extension (SEP-2640): the skills of the trusted roots, of the user and of other servers as resources. They
// are served with the tool Skill, because most clients read the files themselves. A skill grants nothing.
const (
	skillsExtension = "io.modelcontextprotocol/skills"
	skillScheme     = "skill://"
	skillTool       = "Skill"
	methodSkillList = "skills/list"
	methodSkillGet  = "skills/get"
	methodDirectory = "resources/directory/read"
	directoryType   = "inode/directory"
)

// skillSources returns the directories with skills: those of the trusted roots and that of the user.
func (p *policies) skillSources() (sources []builtin.SkillSource) {
	roots, user := p.definitionDirs("skills")
	for i, dir := range roots {
		prefix := "workspace"
		if i > 0 {
			prefix += fmt.Sprint(i + 1)
		}
		sources = append(sources, builtin.SkillSource{Prefix: prefix, Dir: dir})
	}
	if user != "" {
		sources = append(sources, builtin.SkillSource{Prefix: "user", Dir: user})
	}
	return sources
}

// skills returns the skills that a caller may read.
func (p *policies) skills(policy *guard.Policy) builtin.Skills {
	return builtin.Skills{Policy: policy, Sources: p.skillSources()}
}

// servesSkills reports whether a caller is served skills.
func (s *Server) servesSkills(who auth.Identity) bool {
	d := s.host.tools.now().byName[skillTool].def
	return d != nil && s.host.tools.visible(d, s.host.policies.of(who.Principal), who)
}

// skillURI returns the address of a file of a skill.
func skillURI(s builtin.Skill, file string) string {
	parts := strings.Split(s.Path+"/"+file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return skillScheme + strings.Join(parts, "/")
}

// entry returns the entry of a skill.
func entry(k builtin.Skills, s builtin.Skill) (gateway.Skill, error) {
	files, err := s.Files(k.MayRead)
	e := gateway.Skill{URI: skillURI(s, "SKILL.md"), Frontmatter: s.Members}
	for _, f := range files {
		e.Resources = append(e.Resources, gateway.SkillFile{URI: skillURI(s, f.Name), Digest: f.Digest, Size: f.Size})
	}
	return e, err
}

// foreignSkills returns the skills of other servers that a caller with these rules may read.
func (h *Host) foreignSkills(who auth.Identity, policy *guard.Policy) []gateway.Skill {
	return slices.DeleteFunc(h.children.consults(who.Principal).Skills(), func(k gateway.Skill) bool {
		return !h.tools.visible(&builtin.Def{Name: "mcp__" + k.Server + "__"}, policy, who)
	})
}

// skills returns the skills that the tool Skill has for a caller.
func (h *Host) skills(who auth.Identity, policy *guard.Policy) builtin.Skills {
	k := h.policies.skills(policy)
	k.Others = func() (all []builtin.OtherSkill) {
		for _, s := range h.foreignSkills(who, policy) {
			all = append(all, builtin.OtherSkill{Name: s.Name(), Description: s.Description(), URI: s.URI})
		}
		return all
	}
	return k
}

// skillResult answers the methods of the extension.
func (m *message) skillResult(ctx context.Context) (result any, no *jsonrpc.Error) {
	who := transport.PeerOf(ctx).Who
	if !m.servesSkills(who) {
		return nil, &jsonrpc.Error{ID: m.ID, Code: mcp.METHOD_NOT_FOUND, Text: m.Method +
			": this server serves no skills: the tool Skill is not served"}
	}
	policy := m.host.policies.of(who.Principal)
	k := m.host.policies.skills(policy)
	var whole struct{ Params struct{ URI, Cursor string } }
	_ = json.Unmarshal(m.Rest, &whole) // an unknown address is reported
	uri := whole.Params.URI
	invalid := func(text string) *jsonrpc.Error {
		return &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: text}
	}
	if whole.Params.Cursor != "" {
		return nil, invalid("params.cursor is not a cursor of this server: omit it, the list has one page")
	}
	all, _ := k.Load() // the doctor reports what is left out
	entries := []gateway.Skill{}
	for _, s := range all {
		if m.Method == methodSkillGet && uri != skillURI(s, "SKILL.md") || m.Method == methodDirectory &&
			!strings.HasPrefix(uri+"/", skillURI(s, "")) {
			continue
		}
		if e, err := entry(k, s); err == nil {
			entries = append(entries, e)
		}
	}
	m.host.children.consults(who.Principal).Wait(ctx, gateway.ServerOf(uri))
	for _, e := range m.host.foreignSkills(who, policy) {
		if m.Method == methodSkillList || uri == e.URI || m.Method == methodDirectory &&
			strings.HasPrefix(uri+"/", strings.TrimSuffix(e.URI, "SKILL.md")) {
			entries = append(entries, e)
		}
	}
	answer := completeResult(nil)
	answer["ttlMs"], answer["cacheScope"] = listFresh.Milliseconds(), mcp.CacheScopePrivate
	switch {
	case m.Method == methodSkillList:
		answer["skills"] = entries
	case m.Method == methodDirectory:
		children := childrenIn(entries, uri)
		if one, dir, err := m.skillFile(who, uri); len(children) == 0 &&
			(len(entries) == 0 || err != nil || !one.IsDir(dir)) {
			return nil, invalid(clipped(uri) + " is no directory of a skill")
		}
		answer["resources"] = children
	case len(entries) == 0:
		return nil, invalid("there is no skill " + clipped(uri) + ": skills/list lists them")
	default:
		answer["skill"] = entries[0]
	}
	return answer, nil
}

// childrenIn returns what a directory of a skill contains.
func childrenIn(entries []gateway.Skill, dir string) []mcp.Resource {
	children := []mcp.Resource{}
	for _, e := range entries {
		for _, r := range e.Resources {
			rest, ok := strings.CutPrefix(r.URI, dir+"/")
			if !ok {
				continue
			}
			escaped, _, isDir := strings.Cut(rest, "/")
			name, _ := url.PathUnescape(escaped) // skillURI has escaped it
			child := mcp.NewResource(dir+"/"+escaped, name)
			if isDir {
				child.MIMEType = directoryType
			} else {
				child.MIMEType = typeOf(name)
			}
			if !slices.ContainsFunc(children, func(c mcp.Resource) bool { return c.URI == child.URI }) {
				children = append(children, child)
			}
		}
	}
	return children
}

// skillResources returns the skills of a caller as resources.
func (s *Server) skillResources(who auth.Identity) (all []mcp.Resource) {
	if !s.servesSkills(who) {
		return nil
	}
	skills, _ := s.host.policies.skills(s.host.policies.of(who.Principal)).Load()
	for _, one := range skills {
		all = append(all, mcp.NewResource(skillURI(one, "SKILL.md"), one.Name,
			mcp.WithResourceDescription(one.Description), mcp.WithMIMEType("text/markdown")))
	}
	return all
}

// skillFile returns the skill and the file that an address names.
func (s *Server) skillFile(who auth.Identity, uri string) (builtin.Skill, string, error) {
	rest, err := url.PathUnescape(strings.TrimPrefix(uri, skillScheme))
	if err != nil || !s.servesSkills(who) {
		return builtin.Skill{}, "", errors.Join(err, errors.New("there is no such skill"))
	}
	return s.host.policies.skills(s.host.policies.of(who.Principal)).SkillAt(rest)
}

// readSkill reads a file of a skill. It goes through the pipeline.
func (s *Server) readSkill(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	peer := transport.PeerOf(ctx)
	peer.Unattended = true
	args, err := json.Marshal(map[string]string{"uri": req.Params.URI})
	if err != nil {
		return nil, err
	}
	def := builtin.Def{Name: skillTool, Permission: guard.ToRead, Hints: builtin.Hints{ReadOnly: true}}
	plan := func(context.Context, *builtin.Env, json.RawMessage) (builtin.Plan, error) {
		one, file, err := s.skillFile(peer.Who, req.Params.URI)
		return builtin.Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
			Run: func(context.Context) (builtin.Result, error) {
				content, err := one.Read(file)
				if err != nil {
					return builtin.Result{}, err
				}
				text := string(content) // for hooks
				if !utf8.Valid(content) {
					text = req.Params.URI
				}
				return builtin.Result{Text: text, Passed: []mcp.ResourceContents{contentsOf(req.Params.URI, file, content)}}, nil
			},
		}, err
	}
	result, passed, err := s.consult(transport.WithPeer(ctx, peer), builtin.External(def, true, plan), args,
		req.Params.Meta, mcp.MultiRoundTripParams{})
	if err != nil {
		return nil, err
	}
	switch got := passed.(type) {
	case []mcp.ResourceContents:
		return got, nil // the limit of skills applies, so that every file in a list can be read
	case string: // a hook has changed it
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: "text/plain",
			Text: got}}, nil
	}
	return nil, errors.New(textIn(result))
}

// contentsOf returns the content of a file as a resource.
func contentsOf(uri, file string, content []byte) mcp.ResourceContents {
	if utf8.Valid(content) {
		return mcp.TextResourceContents{URI: uri, MIMEType: typeOf(file), Text: string(content)}
	}
	return mcp.BlobResourceContents{URI: uri, MIMEType: typeOf(file), Blob: base64.StdEncoding.EncodeToString(content)}
}

// typeOf returns the type of a file by its name, "" if it is unknown.
func typeOf(file string) string {
	if path.Ext(file) == ".md" {
		return "text/markdown"
	}
	return mime.TypeByExtension(path.Ext(file))
}

// serveSkills answers requests for resources of skills.
func (s *Server) serveSkills(hooks *server.Hooks) {
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(skillScheme+"{+address}", foreignHandler), s.readSkill)
	hooks.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest,
		r *mcp.ListResourcesResult) {
		r.Resources = append(r.Resources, s.skillResources(transport.PeerOf(ctx).Who)...)
	})
}
