package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is one file settings may come from, present or not.
type source struct {
	kind Kind
	file string
	root string // Entry.Root
	// workspace is the root the file belongs to, for local and project files.
	workspace string
	// required means that a flag or setting names the file, so that its absence is an error.
	required bool
	client   bool // Entry.Client
	servers  bool // nothing counts but mcpServers, and a file that cannot be read stops nothing
}

// sources returns the files to read, highest precedence first.
func (cfg Config) sources() []source {
	list := cfg.managedSources(dropIns)
	for _, file := range slices.Backward(cfg.Files) {
		if abs, err := filepath.Abs(file); err == nil {
			file = abs
		}
		list = append(list, source{kind: commandLine, file: file, root: filepath.Dir(file), required: true})
	}
	for _, level := range []struct {
		kind Kind
		own  string
		code string
	}{{Local, "toolhost.local.json", "settings.local.json"}, {Project, "toolhost.json", "settings.json"}} {
		for _, root := range cfg.Roots {
			own := source{kind: level.kind, file: filepath.Join(root, ".toolhost", level.own), root: root,
				workspace: root}
			code := own
			code.file, code.client = filepath.Join(root, ".claude", level.code), true
			list = append(list, own, code)
		}
	}
	if cfg.importsProject() {
		for _, root := range cfg.Roots {
			list = append(list, source{kind: Project, file: filepath.Join(root, ".mcp.json"), root: root,
				workspace: root, client: true, servers: true})
		}
	}
	return dedupe(append(list, cfg.userSources()...))
}

func (cfg Config) userSources() []source {
	var list []source
	add := func(file, root string) { list = append(list, source{kind: User, file: file, root: root}) }
	if cfg.UserConfigDir != "" {
		for _, root := range cfg.Roots {
			add(cfg.answersFile(root), root)
		}
		add(cfg.UserFile(), filepath.Dir(cfg.UserFile()))
	}
	if cfg.Home != "" {
		dir := filepath.Join(cfg.Home, ".claude")
		add(filepath.Join(dir, "settings.json"), dir)
		list[len(list)-1].client = true
	}
	return list
}

// dedupe leaves a workspace file out when the user's own files hold the
// same path, as ~/.claude/settings.json does when the home directory is a root.
func dedupe(list []source) []source {
	own := map[string]bool{}
	for _, s := range list {
		if !s.kind.inWorkspace() && s.kind != commandLine {
			own[filepath.Clean(s.file)] = true
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s source) bool {
		file := filepath.Clean(s.file)
		if seen[file] || s.kind.inWorkspace() && own[file] {
			return true
		}
		seen[file] = true
		return false
	})
}

// managedDirs returns the administrator's directories, ours first, each with
// its main file and its drop-in directory.
func (cfg Config) managedDirs() [][2]string {
	base := cfg.ManagedDir
	if base == "" {
		base = managedBase()
	}
	own, code := filepath.Join(base, "toolhost"), filepath.Join(base, claudeManagedName)
	return [][2]string{
		{filepath.Join(own, "toolhost.json"), filepath.Join(own, "toolhost.d")},
		{filepath.Join(code, "managed-settings.json"), filepath.Join(code, "managed-settings.d")},
	}
}

// managedSources lists the managed files. As in Claude Code, a drop-in goes
// before the main file and before drop-ins whose names sort earlier. dropIns
// returns the names of those in a directory, sorted.
func (cfg Config) managedSources(dropIns func(dir string) ([]string, error)) []source {
	var list []source
	for i, dir := range cfg.managedDirs() {
		client := i > 0
		names, err := dropIns(dir[1])
		if err != nil && !absent(err) {
			// The directory itself takes the place of a file: reading it fails,
			// and that is reported, instead of rules that vanish.
			list = append(list, source{kind: Managed, file: dir[1], required: true})
		}
		for _, name := range slices.Backward(names) {
			list = append(list, source{kind: Managed, file: filepath.Join(dir[1], name), client: client})
		}
		list = append(list, source{kind: Managed, file: dir[0], client: client})
	}
	return list
}

// dropIns lists the settings files in a directory.
func dropIns(dir string) ([]string, error) {
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, err
}

// answersFile is where "always allow" answers for a root are kept: outside the
// workspace, so that neither the repository nor a tool can write it.
func (cfg Config) answersFile(root string) string {
	sum := sha256.Sum256([]byte(canonical(root)))
	return filepath.Join(cfg.UserConfigDir, "toolhost", "workspaces", hex.EncodeToString(sum[:8])+".json")
}

// canonical is the name a root is remembered by.
func canonical(root string) string {
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return filepath.Clean(root)
}

// Names returns the files that settings come from, present or not.
func (cfg Config) Names() []string {
	var names []string
	for _, src := range cfg.sources() {
		names = append(names, src.file)
	}
	return names
}

// ManagedDirs returns the directories that administrators put settings in.
func ManagedDirs() []string {
	return []string{filepath.Join(managedBase(), claudeManagedName), filepath.Join(managedBase(), "toolhost")}
}
