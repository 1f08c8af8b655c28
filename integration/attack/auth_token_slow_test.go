//go:build slow && unix

package attack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestSecretsOfFlags keeps the files that flags name out of the reach of tools, though they lie in a root.
func TestSecretsOfFlags(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	for _, name := range []string{"se?ret", "secret ", "secret\\ "} {
		t.Run(strconv.Quote(name), func(t *testing.T) { testSecretsOfFlags(t, held, name) })
	}
}

func testSecretsOfFlags(t *testing.T, held bool, name string) {
	root := host.TempDir(t)
	odd := filepath.Join(root, "odd [x]*(y)")
	if err := os.MkdirAll(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	secret, tokens := filepath.Join(odd, name), filepath.Join(odd, "tokens.json")
	if err := os.WriteFile(secret, []byte("CANARY-SECRET-771199\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := host.CleanEnv(filepath.Join(root, "home"))
	bearer := token(t, root, env, "add", "a", "--tokens", tokens)
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.HTTPModern, root, env, "--allow", "Bash", "--allow", "Edit", "--token-file",
		secret, "--tokens", tokens, "--root", root)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	s := &shop{t: t, h: h, ws: root, env: env}
	c, err := client.HTTP(ctx, client.Modern, h.URL, bearer)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(tokens)
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		tool string
		args object
	}
	attempts := []attempt{
		{"Read", object{"file_path": secret}}, {"Read", object{"file_path": tokens}}, {"Grep", object{"pattern": "CANARY|sha256", "path": root, "output_mode": "content"}},
		{"Write", object{"file_path": tokens, "content": `{"tokens":[]}`}}, {"Edit", object{"file_path": tokens, "old_string": "read", "new_string": "exec"}},
	}
	if held {
		for _, command := range []string{"cat odd*/*", "cat odd*/se*", "echo x > odd*/tokens.json",
			"rm -f odd*/tokens.json", "mv odd*/tokens.json t; cat t", "python3 -c \"import glob;[print(open(f).read()) for f in glob.glob('odd*/*')]\""} {
			attempts = append(attempts, attempt{"Bash", object{"command": command}})
		}
	}
	for _, a := range attempts {
		if raw, _ := s.call(c, a.tool, a.args, nil); strings.Contains(raw, "771199") ||
			strings.Contains(raw, `sha256\`) {
			t.Errorf("%s %v tells %s", a.tool, a.args, host.Clip(raw, 400))
		}
		if after, err := os.ReadFile(tokens); err != nil || string(after) != string(before) {
			t.Fatalf("%s %v has changed the tokens: %s %v", a.tool, a.args, after, err)
		}
	}
}
