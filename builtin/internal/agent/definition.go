package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/mdfile"
)

// A Definition is a type of agents.
type Definition struct {
	Name, Description string
	// Prompt is put before the prompt of a call.
	Prompt string
	// Tools are the names of its tools, Denied those of tools that it does not have; no Tools: all. Servers are the
	// other servers whose tools it has; nil: all.
	Tools, Denied, Servers []string
	// Model is empty for that of the runner. Mode is a mode of permissions; empty: that of the caller.
	Model, Mode string
	// MaxTurns is 0 for that of the settings.
	MaxTurns   int
	Isolation  string
	Background bool
}

// ReadsOnly reports whether the agent changes no files: in plan mode, without a tool that writes files or runs
// commands, or if its definition takes Edit and Write away. Its commands write no files then, either.
func (d Definition) ReadsOnly() bool {
	denied := func(tool string) bool { return slices.Contains(d.Denied, tool) }
	writes := func(tool string) bool {
		known := slices.Contains([]string{"Bash", "Edit", "Write", "NotebookEdit"}, tool)
		return (known || strings.HasPrefix(tool, "mcp__")) && !denied(tool)
	}
	return d.Mode == "plan" || denied("Edit") && denied("Write") ||
		len(d.Tools) > 0 && !slices.ContainsFunc(d.Tools, writes)
}

// builtIn returns the types that always exist.
func builtIn() []Definition {
	return []Definition{
		{Name: "general", Description: "any task, with all tools of the caller"},
		{Name: "explore", Description: "finds and reads files, changes nothing", Mode: "plan", Tools: []string{"Read", "Glob", "Grep", "WebFetch", "WebSearch"},
			Prompt: "You look around and report. You change nothing. Name files with their paths and lines."},
	}
}

// Bounds of definitions.
const (
	maxDefinition  = 64 << 10 // bytes of a file
	maxDefinitions = 256      // files of a directory
	maxName        = 64
)

// Load reads the definitions in directories, of which the first has precedence, and adds the built-in ones. The error
// has a line for each file with an error: a malformed file is left out, one with unknown members is used.
func Load(dirs []string, tool func(name string) string) (all []Definition, wrong error) {
	own := builtIn()
	known := map[string]bool{}
	add := func(d Definition) {
		if key := strings.ToLower(d.Name); !known[key] {
			known[key] = true
			all = append(all, d)
		}
	}
	for _, dir := range dirs {
		for file, text := range files(dir, &wrong) {
			d, err := parse(text, tool)
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %w", file, err))
			}
			switch {
			case slices.ContainsFunc(own, func(b Definition) bool { return strings.EqualFold(b.Name, d.Name) }):
				wrong = errors.Join(wrong, fmt.Errorf("%s: left out: %s is built in: give it another name", file, d.Name))
			case d.Name != "":
				add(d)
			}
		}
	}
	for _, d := range own {
		add(d)
	}
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return all, wrong
}

// files yields the path and the text of each definition in a directory, by name. It adds to wrong what cannot be read.
func files(dir string, wrong *error) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		root, err := mdfile.OpenDir(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				*wrong = errors.Join(*wrong, err)
			}
			return
		}
		defer root.Close()
		names, err := list(root)
		if err != nil {
			*wrong = errors.Join(*wrong, err)
		}
		for _, name := range names {
			file := filepath.Join(dir, name)
			text, err := mdfile.Read(root, name, maxDefinition)
			if err != nil {
				*wrong = errors.Join(*wrong, fmt.Errorf("%s: %w", file, err))
			} else if !yield(file, text) {
				return
			}
		}
	}
}

// list returns the names of the definitions in a directory, sorted.
func list(root *os.Root) (names []string, err error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxDefinitions)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".md") && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// name is compiled when it is needed, as it is large.
var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pN_.-]*$`) })

// modes are the modes that a definition may name. Others are ignored.
var modes = []string{"plan", "dontAsk", "default", "acceptEdits"}

// parse parses the text of a definition. It may return a definition with an error that says which part is ignored.
func parse(text []byte, tool func(string) string) (d Definition, err error) {
	members, body, err := mdfile.Split(text)
	if err != nil {
		return d, fmt.Errorf("it is left out: %w", err)
	}
	d = Definition{Prompt: body}
	return d.fill(members, tool)
}

// fill sets the members of a definition.
func (d Definition) fill(members map[string]any, tool func(string) string) (Definition, error) {
	var ignored []string
	for key, v := range members {
		switch key {
		case "name":
			d.Name, _ = v.(string)
		case "description":
			text, _ := v.(string)
			d.Description = strings.Join(strings.Fields(text), " ")
		case "tools":
			d.Tools = toolNames(v, tool)
			if len(d.Tools) == 0 && v != nil {
				d.Tools = []string{"none"} // an empty set is not all
			}
		case "disallowedTools":
			d.Denied = toolNames(v, tool)
		case "mcpServers":
			d.Servers = append([]string{}, words(v)...)
		case "model":
			if d.Model, _ = v.(string); d.Model == "inherit" {
				d.Model = ""
			}
		case "permissionMode":
			if d.Mode, _ = v.(string); !slices.Contains(modes, d.Mode) {
				ignored, d.Mode = append(ignored, fmt.Sprintf("permissionMode %v (an agent has the mode of its caller or a "+
					"stricter one)", v)), ""
			}
		case "maxTurns":
			n, _ := v.(uint64)
			if d.MaxTurns = int(min(n, 10_000)); d.MaxTurns == 0 {
				ignored = append(ignored, fmt.Sprintf("maxTurns %v", v))
			}
		case "isolation":
			if d.Isolation, _ = v.(string); d.Isolation != "worktree" && d.Isolation != "none" {
				ignored, d.Isolation = append(ignored, fmt.Sprintf("isolation %v", v)), ""
			}
		case "background":
			d.Background, _ = v.(bool)
		case "color":
		default:
			ignored = append(ignored, key)
		}
	}
	switch {
	case !name().MatchString(d.Name) || len(d.Name) > maxName:
		return Definition{}, fmt.Errorf("it is left out: name: expected letters, digits, - and _, %d at most, got %q",
			maxName, d.Name)
	case d.Description == "":
		return Definition{}, errors.New("it is left out: it has no description, which models need to choose it")
	case len(ignored) > 0:
		slices.Sort(ignored)
		return d, fmt.Errorf("the agent %s: ignored: %s", d.Name, strings.Join(ignored, ", "))
	}
	return d, nil
}

// toolNames are the names of tools as this host calls them.
func toolNames(v any, tool func(string) string) (all []string) {
	for _, name := range words(v) {
		name, _, _ = strings.Cut(name, "(")
		if ours := tool(name); ours != "" {
			name = ours
		}
		all = append(all, name)
	}
	return all
}

// words are the texts of a list, or of a text with commas.
func words(v any) (all []string) {
	switch v := v.(type) {
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				all = append(all, s)
			}
		}
	case map[string]any: // servers with their entries, of which the names count
		for name := range v {
			all = append(all, name)
		}
		slices.Sort(all)
	}
	return all
}

// maxListed is how many bytes the list of definitions may take.
const maxListed = 1500

// List describes definitions, a line each, in at most 1,500 bytes.
func List(all []Definition) string {
	const head, more = "\n\nTypes:\n", "- and %d more: an unknown type names them\n"
	room, left := maxListed-len(head)-len(more), len(all)
	most := max(room/max(left, 1), maxName+10)
	text := head
	for _, d := range all {
		line := "- " + d.Name + ": " + d.Description
		if cut := most - 2; len(line) > cut {
			line = strings.ToValidUTF8(line[:cut-len("…")], "") + "…"
		}
		if len(text)+len(line)+1 > room+len(head) {
			text += fmt.Sprintf(more, left)
			break
		}
		text += line + "\n"
		left--
	}
	return strings.TrimSuffix(text, "\n")
}
