//go:build linux

package attack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// secretMark is in the values of secretVariables.
const secretMark = "ENV-CANARY-7731"

// secretVariables are in the environment of the hosts that TestAttackEnvironment starts.
var secretVariables = []string{
	"GH_TOKEN=" + secretMark, "OPENAI_API_KEY=" + secretMark, "AWS_SECRET_ACCESS_KEY=" + secretMark, "DATABASE_URL=postgres://u:" + secretMark + "@db/x",
	"HTTPS_PROXY=http://u:" + secretMark + "@127.0.0.1:9", "GOPROXY=https://" + secretMark + "@127.0.0.1:9,off", "PATHX=" + secretMark, "LANGUAGE_KEY=" + secretMark,
	"npm_config__authToken=" + secretMark, "GIT_CONFIG_VALUE_0=" + secretMark, "SSH_AUTH_SOCK=/" + secretMark, "MYAPP_NAME=mine", "GOFLAGS=-count=1", "LC_TIME=C", "BASH_FUNC_f%%=() { echo " + secretMark + "; }",
}

// serviceVariables are what systemd says to a host. They reach no command and no hook.
var serviceVariables = []string{
	"NOTIFY_SOCKET=/" + secretMark, "LISTEN_FDNAMES=" + secretMark, "LISTEN_PID=1", "LISTEN_FDS=1", "LISTEN_PIDFDID=1", "WATCHDOG_USEC=900000000", "WATCHDOG_PID=1",
}

// environmentAttacks print what a command can know of the host's environment.
var environmentAttacks = []string{
	"env", "export -p; declare -px", "set", `sh -c 'cat /proc/$$/environ'`, "cat /proc/1/environ", "cat /proc/[0-9]*/environ 2>/dev/null; true",
	"bash -lic env 2>/dev/null", `python3 -c 'import os; print(os.environ)'`, `cat "/proc/$PPID/environ"`, "f; true", `echo "${!GH*} $GH_TOKEN ${OPENAI_API_KEY:?}"`,
	`git config --list; npm config get //registry/:_authToken 2>&1`,
}

// TestAttackEnvironmentUnderLandlock does so where processes of the host have names in /proc.
func TestAttackEnvironmentUnderLandlock(t *testing.T) {
	g := host.NewGround(t)
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHostAs(ctx, host.WithoutNamespaces(t), host.HTTPModern, g.WS,
		append(host.CleanEnv(g.Home), secretVariables...), "--allow", "Bash")
	host.Must(t, err)
	defer h.Stop()
	for _, command := range samples.Of(environmentAttacks, 1) {
		args, err := json.Marshal(map[string]string{"command": command})
		host.Must(t, err)
		r, err := h.Call(ctx, "Bash", string(args))
		host.Must(t, err)
		if strings.Contains(r.Text(), secretMark) {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
}

// TestEnvironmentOverStdio looks at what the caller's own commands and hooks get: the user's environment, without what systemd says.
func TestEnvironmentOverStdio(t *testing.T) {
	g := host.NewGround(t)
	host.Must(t, os.MkdirAll(filepath.Join(g.Home, ".claude"), 0o755))
	host.Must(t, os.WriteFile(filepath.Join(g.Home, ".claude/settings.json"),
		[]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"env > `+filepath.Join(g.Home, "hooked")+
			`"}]}]}}`), 0o644))
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, g.WS,
		append(host.CleanEnv(g.Home), append(serviceVariables, "GH_TOKEN=mine")...), "--allow", "Bash")
	host.Must(t, err)
	defer h.Stop()
	r, err := h.Call(ctx, "Bash", `{"command":"env"}`)
	host.Must(t, err)
	hooked, err := os.ReadFile(filepath.Join(g.Home, "hooked"))
	host.Must(t, err)
	for what, env := range map[string]string{"a command": r.Text(), "a hook": string(hooked)} {
		if !strings.Contains(env, "GH_TOKEN=mine") {
			t.Errorf("%s does not get the user's environment: %s", what, env)
		}
		for _, v := range serviceVariables {
			if name, _, _ := strings.Cut(v, "="); strings.Contains(env, name+"=") {
				t.Errorf("%s gets %s: %s", what, name, env)
			}
		}
	}
}

// TestWorkspacePassesNoVariables lets a workspace, although it is trusted, name variables to pass.
func TestWorkspacePassesNoVariables(t *testing.T) {
	s := openShopWith(t, client.Modern, secretVariables, "--trust-workspace")
	for _, file := range []string{".claude/settings.json", ".claude/settings.local.json", ".toolhost/toolhost.json",
		".toolhost/toolhost.local.json"} {
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.ws, file)), 0o755))
		host.Must(t, os.WriteFile(filepath.Join(s.ws, file), []byte(`{"bash":{"env":{"pass":["*"]}}}`), 0o644))
	}
	if raw := s.bash(s.h.Conn, "env", nil); strings.Contains(raw, secretMark) {
		t.Error(raw)
	}
	host.Must(t, s.h.Stop())
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.HTTPModern, s.ws, append(s.env, secretVariables...), "--allow", "Bash",
		"--trust-workspace")
	host.Must(t, err)
	s.h = h
	if raw := s.bash(h.Conn, "env", nil); strings.Contains(raw, secretMark) {
		t.Error(raw)
	}
}

// TestTokenNotInLog starts hosts whose messages are not shown at a terminal. The first start makes the token.
func TestTokenNotInLog(t *testing.T) {
	for _, flags := range samples.Of([][]string{nil, {"--console"}, {"--log-level", "debug"}}, 1) {
		g := host.NewGround(t)
		s := g.Serve(nil, nil, append([]string{"--listen", "127.0.0.1:0"}, flags...)...)
		if s.End(); strings.Contains(s.Stderr.String(), s.Token) ||
			!strings.Contains(s.Stderr.String(), "show it with: cat '") {
			t.Errorf("%v: %s", flags, s.Stderr)
		}
	}
}
