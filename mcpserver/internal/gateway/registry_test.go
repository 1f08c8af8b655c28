package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRegistries(t *testing.T) {
	npm, pypi := []string{"registry.npmjs.org", "registry.yarnpkg.com"}, []string{"pypi.org", "files.pythonhosted.org"}
	for _, tt := range []struct {
		name, command, npmrc string
		host, entry          map[string]string
		trust                Trust
		hosts, env           []string
	}{
		{"npx", "/usr/bin/npx", "", nil, nil, User, npm, nil},
		{"uvx", "uvx", "", nil, nil, User, pypi, nil},
		{"none", "node", "registry=https://own.example/", nil, nil, User, nil, nil},
		{"npmrc", "npx", "# x\nregistry = \"https://own.example:8443/npm/\"\n//own.example/:_authToken=secret\n", nil, nil, User, []string{"own.example:8443"}, []string{"npm_config_registry=https://own.example:8443/npm/"}},
		{"npmrc of a scope alone", "npx", "@x:registry=https://own.example/", nil, nil, User, npm, nil},
		{"variable", "npx", "registry=https://file.example/", map[string]string{"npm_config_registry": "https://own.example/"}, nil, User, []string{"own.example"}, []string{"npm_config_registry=https://own.example/"}},
		{"variable in capitals", "bunx", "", map[string]string{"NPM_CONFIG_REGISTRY": "https://own.example/"}, nil, User, []string{"own.example"}, []string{"NPM_CONFIG_REGISTRY=https://own.example/"}},
		{"credentials", "npx", "", map[string]string{"npm_config_registry": "https://me:secret@own.example/"}, nil, User, npm, nil},
		{"no address", "npx", "registry=file:///etc", nil, nil, User, npm, nil},
		{"entry", "npx", "registry=https://file.example/", nil, map[string]string{"npm_config_registry": "https://own.example/"}, User, []string{"own.example"}, nil},
		{"entry of a project", "npx", "", nil, map[string]string{"npm_config_registry": "https://own.example/"}, Project, npm, nil},
		{"uv", "uvx", "", map[string]string{"UV_DEFAULT_INDEX": "https://own.example/simple"}, nil, User, []string{"own.example"}, []string{"UV_DEFAULT_INDEX=https://own.example/simple"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("USERPROFILE", home)
			for _, l := range launchers {
				for _, variable := range l.variables {
					t.Setenv(variable, tt.host[variable])
				}
			}
			if tt.npmrc != "" {
				if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(tt.npmrc), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			hosts, env := registries(tt.command, &Entry{Env: tt.entry, Trust: tt.trust})
			if !slices.Equal(hosts, tt.hosts) || !slices.Equal(env, tt.env) {
				t.Errorf("got %v %v, want %v %v", hosts, env, tt.hosts, tt.env)
			}
		})
	}
}
