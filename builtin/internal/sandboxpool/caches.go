package sandboxpool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

// A cache is where a tool keeps what it has downloaded or built. Programs outside of the sandbox never use what a
// command has put there: commands see directories of the host through an overlay. Where there is none, they get a
// directory of their own, to which the variable leads.
type cache struct {
	variable string   // of the tool, or with an option that is added to it
	dirs     []string // where the tool looks if the variable is not set
	own      string   // below the scratch directory; "": the tool has no variable
	// needed are files in the first directory without which commands that work with the host's would fail. With one of
	// them, and without an overlay, commands keep the host's directory, which is read-only.
	needed []string
}

// caches are all of them. The first holds those of most tools: of pip, uv, Poetry, Composer, Yarn, Deno, ccache,
// sccache, Playwright, Cypress, Hugging Face. Their own variables are listed for people who have set them.
var caches = []cache{
	{"XDG_CACHE_HOME", []string{"$HOME/.cache"}, "cache", nil},
	{"GOCACHE", []string{"$XDG_CACHE_HOME/go-build"}, "cache/go-build", nil},
	{"GOMODCACHE", []string{"$GOPATH/pkg/mod"}, "cache/go-mod", []string{"cache"}},
	{"CARGO_HOME", []string{"$HOME/.cargo"}, "cache/cargo", []string{"registry", "git", "config", "config.toml"}},
	{"MAVEN_OPTS=-Dmaven.repo.local=", []string{"$HOME/.m2"}, "cache/maven", []string{"repository", "settings.xml"}},
	{"GRADLE_USER_HOME", []string{"$HOME/.gradle"}, "cache/gradle", []string{"caches", "gradle.properties", "init.d"}},
	{"npm_config_cache", []string{"$HOME/.npm"}, "cache/npm", nil},
	{"PNPM_HOME", []string{"$XDG_DATA_HOME/pnpm"}, "cache/pnpm", nil},
	{"YARN_GLOBAL_FOLDER", []string{"$HOME/.yarn/berry"}, "cache/yarn-berry", nil},
	{"YARN_CACHE_FOLDER", []string{"$XDG_CACHE_HOME/yarn"}, "cache/yarn", nil},
	{"BUN_INSTALL_CACHE_DIR", []string{"$BUN_INSTALL/install/cache"}, "cache/bun", nil},
	{"DENO_DIR", []string{"$XDG_CACHE_HOME/deno"}, "cache/deno", []string{"npm", "deps"}},
	{"PIP_CACHE_DIR", []string{"$XDG_CACHE_HOME/pip"}, "cache/pip", nil},
	{"PYTHONUSERBASE", []string{"$HOME/.local/lib"}, "cache/python", []string{"."}},
	{"", []string{"$HOME/.local/bin"}, "", nil}, // of the same packages
	{"UV_CACHE_DIR", []string{"$XDG_CACHE_HOME/uv"}, "cache/uv", nil},
	{"POETRY_CACHE_DIR", []string{"$XDG_CACHE_HOME/pypoetry"}, "cache/pypoetry", []string{"virtualenvs"}},
	{"GEM_HOME", []string{"$XDG_DATA_HOME/gem", "$HOME/.gem"}, "cache/gem", []string{"."}},
	{"COMPOSER_CACHE_DIR", []string{"$XDG_CACHE_HOME/composer", "$HOME/.composer/cache"}, "cache/composer", nil},
	{"NUGET_PACKAGES", []string{"$HOME/.nuget"}, "cache/nuget", []string{"packages"}},
	{"NUGET_HTTP_CACHE_PATH", []string{"$XDG_DATA_HOME/NuGet"}, "cache/nuget-http", nil},
	{"PLAYWRIGHT_BROWSERS_PATH", []string{"$XDG_CACHE_HOME/ms-playwright"}, "cache/ms-playwright", []string{"."}},
	{"HF_HOME", []string{"$XDG_CACHE_HOME/huggingface"}, "cache/huggingface", []string{"hub"}},
	{"CCACHE_DIR", []string{"$XDG_CACHE_HOME/ccache", "$HOME/.ccache"}, "cache/ccache", nil},
	{"SCCACHE_DIR", []string{"$XDG_CACHE_HOME/sccache"}, "cache/sccache", nil},
}

// defaults are those of variables that the table names.
var defaults = map[string]string{
	"XDG_CACHE_HOME": "$HOME/.cache", "XDG_DATA_HOME": "$HOME/.local/share", "XDG_CONFIG_HOME": "$HOME/.config",
	"GOPATH": "$HOME/go", "BUN_INSTALL": "$HOME/.bun",
}

// A toolCache is a cache of the table on this machine.
type toolCache struct {
	cache
	places []string // real paths of those that exist
	value  string   // of the variable
	nested bool     // it lies in the first cache of the table, and moves with that
}

// toolCaches are the caches of the table, in its order.
type toolCaches []toolCache

// newCaches finds the caches of the tools in the environment of commands.
func newCaches(policy *guard.Policy) toolCaches {
	commands := policy.Commands()
	env := variables(slices.Concat(shell.Inherited(commands.PassedVariables()), commands.Environment()))
	env.addGo()
	var list toolCaches
	for i, row := range caches {
		dirs := row.dirs
		name, option, _ := strings.Cut(row.variable, "=")
		set := option == "" && filepath.IsAbs(env[name])
		t := toolCache{cache: row, value: env[name]}
		if set {
			dirs = []string{env[name]}
		}
		for _, dir := range dirs {
			path := filepath.Clean(env.expand(dir))
			if real, err := filepath.EvalSymlinks(path); err == nil {
				path = real
			}
			t.places = append(t.places, path)
		}
		t.nested = !set && i > 0 && within(t.places[0], list[0].places)
		list = append(list, t)
	}
	return list
}

// environment is variables by their names.
type environment map[string]string

// variables takes the last value of each.
func variables(list []string) environment {
	env := environment{}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok && value != "" {
			env[name] = value
		}
	}
	if env["HOME"] == "" {
		env["HOME"], _ = os.UserHomeDir() // no path below "" is absolute
	}
	return env
}

// addGo adds what go env -w has set. GOPATH may be a list, of which the first directory gets the modules.
func (e environment) addGo() {
	text, err := os.ReadFile(filepath.Join(e.expand("$XDG_CONFIG_HOME"), "go", "env"))
	if err != nil {
		text = nil
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && e[name] == "" && value != "" {
			e[name] = value
		}
	}
	if list := filepath.SplitList(e["GOPATH"]); len(list) > 0 {
		e["GOPATH"] = list[0]
	}
}

// expand puts in the values of variables, or their defaults.
func (e environment) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if value := e[name]; value != "" {
			return value
		}
		return e.expand(defaults[name])
	})
}

// lies reports whether a directory of the cache is one of dirs or lies in one.
func (t toolCache) lies(dirs []string) bool {
	return slices.ContainsFunc(t.places, func(place string) bool { return within(place, dirs) })
}

// keeps reports whether commands that have no overlay use the host's directory.
func (t toolCache) keeps() bool {
	return slices.ContainsFunc(t.needed, func(name string) bool {
		_, err := os.Lstat(filepath.Join(t.places[0], name))
		return err == nil
	})
}

// variables returns the variables that lead tools to caches of the sandbox's own, and creates these. A cache in one
// of the directories with an overlay needs none.
func (list toolCaches) variables(scratch string, overlaid []string) (env []string, err error) {
	for _, t := range list {
		kept := t.keeps()
		if t.own == "" || t.lies(overlaid) || kept != t.nested {
			continue // the tool finds it
		}
		to := t.places[0]
		if !kept {
			to = filepath.Join(scratch, filepath.FromSlash(t.own))
			if err := os.MkdirAll(to, 0o700); err != nil {
				return nil, err
			}
		}
		entry := t.variable + "=" + to
		if strings.Contains(t.variable, "=") { // an option, before those of a person
			entry = strings.TrimSpace(t.variable + to + " " + t.value)
		}
		env = append(env, entry)
	}
	return env, nil
}
