package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// A launcher is a kind of program that fetches packages and runs them.
type launcher struct {
	commands []string
	hosts    []string // that it fetches from, where no other registry is set
	// variables name another registry; the first of the host or the entry that is set counts.
	variables []string
}

var launchers = []launcher{
	{strings.Fields("npx bunx npm bun pnpm pnpx yarn"), []string{"registry.npmjs.org", "registry.yarnpkg.com"}, []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"}},
	{strings.Fields("uvx uv pipx"), []string{"pypi.org", "files.pythonhosted.org"}, []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"}},
}

// registries returns the hosts that a launcher of packages fetches from, and the variable that names the user's own registry to it. What an
// entry of a project names is not followed, and credentials are not passed on.
func registries(command string, e *Entry) (hosts, env []string) {
	name := strings.TrimSuffix(filepath.Base(command), ".exe")
	i := slices.IndexFunc(launchers, func(l launcher) bool { return slices.Contains(l.commands, name) })
	if i < 0 {
		return nil, nil
	}
	l := launchers[i]
	for _, variable := range l.variables {
		if given := e.Env[variable]; given != "" {
			if host := registryHost(given); host != "" && e.Trust != Project {
				return []string{host}, nil
			}
			return l.hosts, nil
		}
	}
	for _, variable := range l.variables {
		own := os.Getenv(variable)
		if variable == "npm_config_registry" {
			own = cmp.Or(own, npmrcRegistry())
		}
		if host := registryHost(own); host != "" {
			return []string{host}, []string{variable + "=" + own}
		}
	}
	return l.hosts, nil
}

// registryHost returns the host of a registry, with its port if it has one; "" if the address is none, or has credentials.
func registryHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Host
}

// maxNpmrc is how much of the user's ~/.npmrc is read, in bytes.
const maxNpmrc = 64 << 10

// npmrcRegistry returns the registry that the user's ~/.npmrc names.
func npmrcRegistry() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	text, err := privatefile.Read(filepath.Join(home, ".npmrc"), maxNpmrc)
	if err != nil {
		return ""
	}
	found := ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && strings.TrimSpace(key) == "registry" {
			found = strings.Trim(strings.TrimSpace(value), `"'`) // the last one counts
		}
	}
	return found
}
