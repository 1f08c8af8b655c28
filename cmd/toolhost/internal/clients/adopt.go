package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/statedir"
)

// An Adoption holds the entries that were moved out of a client's file, by name and unchanged.
type Adoption struct {
	Entries map[string]any `json:"entries"`
	// Left has the reason for each server that stays in the file.
	Left map[string]string `json:"-"`
}

// adoption returns the path of the file that records the moved entries.
func adoption(c Client, r Request) string {
	return filepath.Join(r.Backups.Dir, "adopted-"+c.Name+".json")
}

// maxAdoption is the greatest size of that file, in bytes.
const maxAdoption = 4 << 20

// Adopted returns the entries that were moved out of the client's file and not given back.
func (c Client) Adopted(r Request) (a Adoption, err error) {
	err = statedir.Load(adoption(c, r), maxAdoption, &a)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return a, err
}

// Adopt moves the other servers in the user's file of the client to mcpServers in the file into, where a host serves
// them. An entry that cannot be expressed there stays.
func (c Client) Adopt(ctx context.Context, r Request, into string) (a Adoption, report Report, err error) {
	file, err := c.file(r)
	if err != nil {
		return a, report, err
	}
	if a, err = c.Adopted(r); err != nil {
		return a, report, err
	}
	if a.Left = map[string]string{}; a.Entries == nil {
		a.Entries = map[string]any{}
	}
	c.ViaProgram = false
	report, err = c.edit(ctx, r, file, func(_ Client, r Request, t target) (target, Action, error) {
		_, body := cutBOM(t.raw)
		content, err := c.format().decode(body)
		if err != nil {
			return t, "", err
		}
		servers, err := c.servers(content)
		if err != nil {
			return t, "", err
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if isOurs(servers[name], r.Server) {
				continue
			}
			entry, err := c.generalEntry(servers[name], r.Env)
			if err == nil && !r.DryRun {
				err = settings.SetServer(into, name, entry)
			}
			if err != nil {
				a.Left[name] = err.Error()
				continue
			}
			if t.raw, err = c.take(t.raw, name); err != nil {
				return t, "", err
			}
			a.Entries[name] = servers[name]
		}
		if r.DryRun || len(a.Entries) == 0 {
			return t, Updated, nil
		}
		return t, Updated, statedir.Save(adoption(c, r), a) // before the file changes: nothing is lost
	})
	return a, report, err
}

// GiveBack puts the adopted servers back into the client's file, unless they are there, and removes them from the
// file that Adopt moved them to, except those that another client has also given.
func (c Client) GiveBack(ctx context.Context, r Request, from string) (a Adoption, report Report, err error) {
	if a, err = c.Adopted(r); err != nil || len(a.Entries) == 0 {
		return a, report, err
	}
	file, err := c.file(r)
	if err != nil {
		return a, report, err
	}
	c.ViaProgram = false
	report, err = c.edit(ctx, r, file, func(_ Client, r Request, t target) (target, Action, error) {
		for _, name := range slices.Sorted(maps.Keys(a.Entries)) {
			if t.raw, err = restoreEntry(c, t.raw, name, a.Entries[name]); err != nil {
				return t, "", err
			}
		}
		t.exists = true
		return t, Updated, nil
	})
	if err != nil || r.DryRun {
		return a, report, err
	}
	if err = os.Remove(adoption(c, r)); err != nil {
		return a, report, err
	}
	others := map[string]bool{}
	for _, other := range All() {
		of, err := other.Adopted(r)
		if err != nil {
			return a, report, err
		}
		for name := range of.Entries {
			others[name] = true
		}
	}
	for name := range a.Entries {
		if !others[name] {
			_ = settings.SetServer(from, name, nil) // the user may have removed it
		}
	}
	return a, report, nil
}

// restoreEntry puts an entry into raw, unless there is one with its name.
func restoreEntry(c Client, raw []byte, name string, entry any) ([]byte, error) {
	mark, body := cutBOM(raw)
	before, err := c.format().decode(body)
	if err != nil {
		return nil, err
	}
	if servers, err := c.servers(before); err != nil || servers[name] != nil {
		return raw, err
	}
	path := []string{c.Container, name}
	edited, err := c.format().set(body, path, asWritten(entry))
	if err == nil {
		err = checkEdit(c.format(), before, edited, path, normal(entry))
	}
	return slices.Concat(mark, edited), err
}

// asWritten returns a decoded value in the types that formats can write.
func asWritten(v any) any {
	switch v := v.(type) {
	case map[string]any:
		var all object
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, field{key: key, value: asWritten(v[key])})
		}
		return all
	case []any:
		if texts := strs(v); len(texts) == len(v) {
			return texts
		}
	}
	return v
}

// entryKeys are the keys of entries that have a counterpart in mcpServers. ownKeys are those that only say how the
// client treats the server.
var (
	entryKeys = strings.Fields("command cmd args env environment envs env_vars cwd url serverUrl uri httpUrl headers " +
		"http_headers env_http_headers bearer_token_env_var type transport")
	ownKeys = strings.Fields("alwaysAllow autoApprove description disabled enabled name timeout tools trust " +
		"startup_timeout_sec tool_timeout_sec")
)

// The ways in which clients refer to environment variables. The first group is the name of the variable.
var (
	// VS Code and others write ${env:X}, opencode {env:X}.
	prefixed = regexp.MustCompile(`\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	bare     = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)                // $X of shells
	portable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`)    // ${X}, which hosts replace
	only     = regexp.MustCompile(`\$\{[^}]*\}?|\{(env|file):[^}]*\}?|\$\(.*`) // only the client replaces these
	editors  = regexp.MustCompile(`^\$\{(workspace(Folder|Root)[A-Za-z]*|(relative)?[fF]ile(Basename|Dirname|Extname|Workspace)[A-Za-z]*|file|relativeFile|cwd|execPath|lineNumber|columnNumber|selectedText|defaultBuildTask)\}$`)
)

// translated returns a text of an entry with the placeholders of the client replaced by those of hosts. The error
// names a placeholder that only the client can replace.
func (c Client) translated(text string, e Env) (string, error) {
	separator := "/"
	if e.OS == "windows" {
		separator = `\`
	}
	text = strings.NewReplacer("${userHome}", e.Home, "${pathSeparator}", separator, "${/}", separator).Replace(text)
	text = prefixed.ReplaceAllString(text, "$${$1}")
	if c.BareVariables {
		text = bare.ReplaceAllString(text, "$${$1}")
	}
	rest := portable.ReplaceAllStringFunc(text, func(found string) string {
		if editors.MatchString(found) {
			return found
		}
		return ""
	})
	if found := only.FindString(rest); found != "" && (!strings.HasPrefix(found, "$(") || c.BareVariables) {
		return "", fmt.Errorf("its entry has %s, which only this client replaces", found)
	}
	return text, nil
}

// translate calls translated for each text in a value.
func (c Client) translate(v any, e Env) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return c.translated(v, e)
	case []string:
		out := slices.Clone(v)
		for i := range out {
			if out[i], err = c.translated(out[i], e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]string:
		out := map[string]string{}
		for name := range v {
			if out[name], err = c.translated(v[name], e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// generalEntry returns an entry of a client in the form of toolhost's mcpServers.
func (c Client) generalEntry(entry any, e Env) (json.RawMessage, error) {
	m, ok := entry.(map[string]any)
	if !ok {
		return nil, errors.New("its entry is not a set of members")
	}
	if m["disabled"] == true || m["enabled"] == false {
		return nil, errors.New("it is disabled")
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(entryKeys, key) && !slices.Contains(ownKeys, key) {
			return nil, fmt.Errorf("its entry has %q, which only this client supports", key)
		}
	}
	general := map[string]any{}
	line, url := commandLine(entry), address(entry)
	switch {
	case len(line) > 0:
		general["command"] = line[0]
		if len(line) > 1 {
			general["args"] = line[1:]
		}
	case url != "":
		general["type"], general["url"] = "http", url
	default:
		return nil, errors.New("its entry has neither a command nor a URL")
	}
	if dir, ok := m["cwd"].(string); ok {
		general["cwd"] = dir
	}
	if text := fmt.Sprint(m["type"], m["transport"]); strings.Contains(text, "sse") {
		return nil, errors.New("it is reached by SSE, which is not supported")
	}
	for key, value := range general {
		value, err := c.translate(value, e)
		if err != nil {
			return nil, err
		}
		general[key] = value
	}
	for key, values := range map[string]map[string]string{"env": variables(m), "headers": headers(m)} {
		value, err := c.translate(values, e)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			general[key] = value
		}
	}
	return json.Marshal(general)
}

// variables returns the environment of an entry.
func variables(m map[string]any) map[string]string {
	all := members(m, "env", "environment", "envs")
	for _, name := range strs(m["env_vars"]) {
		all[name] = "${" + name + "}"
	}
	return all
}

// headers returns the headers of an entry.
func headers(m map[string]any) map[string]string {
	all := members(m, "headers", "http_headers")
	for name, variable := range members(m, "env_http_headers") {
		all[name] = "${" + variable + "}"
	}
	if variable, ok := m["bearer_token_env_var"].(string); ok {
		all["Authorization"] = "Bearer ${" + variable + "}"
	}
	return all
}

// members returns the members of the objects that m has under these names.
func members(m map[string]any, names ...string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		values, _ := m[name].(map[string]any)
		maps.Copy(all, texts(values))
	}
	return all
}

func texts(values map[string]any) map[string]string {
	all := map[string]string{}
	for name, v := range values {
		all[name] = fmt.Sprint(v)
	}
	return all
}
