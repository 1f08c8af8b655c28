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
	// Left maps each server that stays to the reason.
	Left map[string]string `json:"-"`
}

// adoption returns the path of the file that records the moved entries.
func adoption(c Client, r Request) string {
	return filepath.Join(r.Backups.Dir, "adopted-"+c.Name+".json")
}

// maxAdoption is the maximum size of that file, in bytes.
const maxAdoption = 4 << 20

// Adopted returns what was moved out of the client's file and not given back.
func (c Client) Adopted(r Request) (a Adoption, err error) {
	err = statedir.Load(adoption(c, r), maxAdoption, &a)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return a, err
}

// Adopt moves the other servers of the user's file of the client to the mcpServers of the file into, where a host serves them. An entry that
// cannot be said there stays.
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
			entry, err := generalEntry(servers[name])
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

// GiveBack puts the adopted servers into the client's file again, unless they are there, and removes them from the file that
// Adopt moved them to, except those that another client has given.
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

// restoreEntry puts an entry into raw, unless one of its name is there.
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

// asWritten returns a decoded value in the types that formats write.
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

// Keys of entries: those that mean the same in mcpServers, and those that say how the client treats the server and nothing about it.
var (
	entryKeys = strings.Fields("command cmd args env environment envs url serverUrl uri httpUrl headers http_headers type transport")
	ownKeys   = strings.Fields("alwaysAllow autoApprove description disabled enabled name timeout tools trust startup_timeout_sec tool_timeout_sec")
)

// reference is a variable as some clients write it; others have what no host can ask for.
var (
	reference = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	foreign   = regexp.MustCompile(`\$\{(input|command|config|workspace)[^}]*\}`)
)

// generalEntry returns an entry of a client as mcpServers of toolhost says it.
func generalEntry(entry any) (json.RawMessage, error) {
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
	for key, names := range map[string][]string{"env": {"env", "environment", "envs"}, "headers": {"headers", "http_headers"}} {
		for _, name := range names {
			if values, ok := m[name].(map[string]any); ok && len(values) > 0 {
				general[key] = texts(values)
			}
		}
	}
	if text := fmt.Sprint(m["type"], m["transport"]); strings.Contains(text, "sse") {
		return nil, errors.New("it is reached by SSE, which is not supported")
	}
	raw, err := json.Marshal(general)
	if err == nil && foreign.Match(raw) {
		err = fmt.Errorf("its entry has %s, which only this client replaces", foreign.Find(raw))
	}
	return reference.ReplaceAll(raw, []byte("$${$1}")), err
}

func texts(values map[string]any) map[string]string {
	all := map[string]string{}
	for name, v := range values {
		all[name] = fmt.Sprint(v)
	}
	return all
}
