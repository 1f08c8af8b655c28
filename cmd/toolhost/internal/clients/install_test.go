package clients

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func scratch(t *testing.T, c Client) Request {
	t.Helper()
	home := t.TempDir()
	e := Env{
		OS: "linux", Home: home, Getenv: func(string) string { return "" },
		Exists:   func(path string) bool { _, err := os.Stat(path); return err == nil },
		Glob:     func(string) []string { return nil },
		LookPath: func(string) string { return "" },
	}
	if err := os.MkdirAll(filepath.Dir(c.UserFile(e)), 0o755); err != nil {
		t.Fatal(err)
	}
	if c.Markers != nil {
		if err := os.MkdirAll(e.paths(c.Markers)[0], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Request{Env: e, Backups: Backups{Dir: filepath.Join(home, "backups")}, Server: localOf(c)}
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// tree is every path below a directory but the backups, with what the files hold.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "backups" {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			all[path] = string(raw)
			return err
		}
		all[path] = d.Type().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUninstallAfterOthers: what somebody else changed after Install stays.
func TestUninstallAfterOthers(t *testing.T) {
	c := known("cursor")
	r := scratch(t, c)
	file := c.UserFile(r.Env)
	write(t, file, "{\n  \"a\": 1\n}\n", 0o600)
	if _, err := c.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(file)
	write(t, file, strings.Replace(string(raw), `"a": 1`, `"a": 2`, 1), 0o600)
	if _, err := c.Uninstall(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	raw, _ = os.ReadFile(file)
	if got, want := string(raw), "{\n  \"a\": 2,\n  \"mcpServers\": {}\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRefused: what cannot be done safely is refused with a reason, and nothing on the disk changes.
func TestRefused(t *testing.T) {
	foreign := `{"mcpServers": {"toolhost": {"command": "npx", "args": ["other"]}}}`
	tests := []struct {
		name   string
		client Client
		body   string
		mode   fs.FileMode
		want   string
	}{
		{"broken", known("cursor"), "{\n  \"a\": }\n", 0o600, "line 2, column 8"},
		{"broken strict", known("claude-desktop"), "{\n  \"a\": ]\n}\n", 0o600, "line 2, column 8"},
		{"comments where the client reads none", known("claude-desktop"), "{\n  // c\n}\n", 0o600, "line 2, column 3"},
		{"two objects", known("claude-desktop"), "{}\n{}\n", 0o600, "line 2, column 1"},
		{"broken TOML", known("codex"), "a = 1\nb = \n", 0o600, "line 2, column 5"},
		{"TOML twice", known("codex"), "a = 1\na = 2\n", 0o600, "line 2"},
		{"broken YAML", known("goose"), "a: 1\nb: [\n", 0o600, "line 2, column 4"},
		{"YAML twice", known("goose"), "a: 1\na: 2\n", 0o600, "line 2, column 1"},
		{"a list", known("cursor"), "[]", 0o600, "does not hold a JSON object"},
		{"a YAML list", known("goose"), "- a\n", 0o600, "does not hold a mapping"},
		{"two YAML documents", known("goose"), "a: 1\n---\nb: 1\n", 0o600, "several documents"},
		{"servers are a list", known("cursor"), `{"mcpServers": []}`, 0o600, "not a set of named servers"},
		{"servers twice", known("cursor"), "{\"mcpServers\": {},\n\"mcpServers\": {}}", 0o600, "line 2, column 1: \"mcpServers\" stands here a second time"},
		{"servers in one line of TOML", known("codex"), "mcp_servers = { a = { command = \"x\" } }\n", 0o600, "[mcp_servers.toolhost]\ncommand ="},
		{"servers in braces of YAML", known("goose"), "extensions: {a: {type: builtin}}\n", 0o600, "extensions:\n  toolhost:\n"},
		{"UTF-16", known("cursor"), "\xff\xfe{\x00}\x00", 0o600, "line 1"},
		{"another server of that name", known("cursor"), foreign, 0o600, "not toolhost (npx other)"},
		{"another URL of that name", known("cursor"), `{"mcpServers": {"toolhost": {"url": "https://example.com/mcp"}}}`, 0o600, "not toolhost (https://example.com/mcp)"},
		{"not a server", known("cursor"), `{"mcpServers": {"toolhost": 1}}`, 0o600, "not toolhost"},
		{"arguments of its own", known("cursor"), `{"mcpServers": {"toolhost": {"command": "/x/toolhost", "args": ["stdio", "--deny", "Read(.env)"]}}}`, 0o600, "arguments of its own (--deny)"},
		{"another set of tools", known("zed"), `{"context_servers": {"toolhost": {"command": "/x/toolhost", "args": ["stdio", "--with", "EnterPlanMode,ExitPlanMode"]}}}`, 0o600, "arguments of its own (--with)"},
		{"another tool search", known("qwen"), `{"mcpServers": {"toolhost": {"command": "/x/toolhost", "args": ["stdio", "--tool-search", "on"]}}}`, 0o600, "arguments of its own (--tool-search)"},
		{"a set of tools where none is written", known("cursor"), `{"mcpServers": {"toolhost": {"command": "/x/toolhost", "args": ["stdio", "--with", "Agent"]}}}`, 0o600, "arguments of its own (--with)"},
		{"read-only", known("cursor"), "{}", 0o400, "is read-only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := scratch(t, tt.client)
			write(t, tt.client.UserFile(r.Env), tt.body, tt.mode)
			before := tree(t, r.Env.Home)
			_, err := tt.client.Install(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), tt.client.UserFile(r.Env)) {
				t.Errorf("got %v; want the file and %q", err, tt.want)
			}
			if diff := cmp.Diff(before, tree(t, r.Env.Home)); diff != "" {
				t.Errorf("something changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestForce replaces what has the name, whole, and removes it.
func TestForce(t *testing.T) {
	for _, body := range []string{
		`{"mcpServers": {"toolhost": {"command": "npx", "args": ["other"], "env": {"K": "v"}}, "z": 1}}`,
		`{"mcpServers": {"toolhost": 1, "z": 1}}`,
	} {
		c := known("cursor")
		r := scratch(t, c)
		r.Force = true
		r.Server.Args = []string{"stdio"}
		write(t, c.UserFile(r.Env), body, 0o600)
		if _, err := c.Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		raw, _ := os.ReadFile(c.UserFile(r.Env))
		if got, want := string(raw), `{"mcpServers": {"z": 1, "toolhost": {"command": "/opt/bin/toolhost", "args": ["stdio"]}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		write(t, c.UserFile(r.Env), body, 0o600)
		if _, err := c.Uninstall(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		raw, _ = os.ReadFile(c.UserFile(r.Env))
		if got, want := string(raw), `{"mcpServers": {"z": 1}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestMembersOfTheUser: an entry of ours keeps what the user put into it.
func TestMembersOfTheUser(t *testing.T) {
	for _, tt := range []struct {
		client       Client
		before, want string
	}{
		{
			known("zed"),
			"{\n  \"context_servers\": {\n    \"toolhost\": {\n      // mine\n      \"command\": \"/old/toolhost\",\n      \"args\": [\"stdio\"],\n      \"env\": {\"K\": \"v\"}\n    }\n  }\n}\n",
			"{\n  \"context_servers\": {\n    \"toolhost\": {\n      // mine\n      \"command\": \"/opt/bin/toolhost\",\n      \"args\": [\"stdio\", \"--root\", \"/r\"],\n      \"env\": {\"K\": \"v\"}\n    }\n  }\n}\n",
		},
		{
			known("codex"),
			"[mcp_servers.toolhost]\ncommand = \"/old/toolhost\" # mine\ntool_timeout_sec = 1200\n\n[mcp_servers.toolhost.env]\nK = \"v\"\n[z]\n",
			"[mcp_servers.toolhost]\ncommand = \"/opt/bin/toolhost\" # mine\ntool_timeout_sec = 1200\nargs = [\"stdio\", \"--root\", \"/r\"]\nrequired = true\nstartup_timeout_sec = 60\n\n[mcp_servers.toolhost.env]\nK = \"v\"\n[z]\n",
		},
		{
			known("goose"),
			"extensions:\n  toolhost:\n    # mine\n    enabled: false\n    type: stdio\n    name: toolhost\n    cmd: /old/toolhost\n    args:\n      - stdio\n    envs:\n      K: v\n    timeout: 9\n  z: {}\n",
			"extensions:\n  toolhost:\n    # mine\n    enabled: false\n    type: stdio\n    name: toolhost\n    cmd: \"/opt/bin/toolhost\"\n    args: [\"stdio\", \"--root\", \"/r\"]\n    envs:\n      K: v\n    timeout: 9\n  z: {}\n",
		},
	} {
		s := local
		s.Args = []string{"stdio", "--root", "/r"}
		got, err := tt.client.put([]byte(tt.before), s, false)
		if err != nil {
			t.Fatalf("%s: %v", tt.client.Name, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.client.Name, diff)
		}
	}
}

// TestSymbolicLink: the link stays and the file behind it changes.
func TestSymbolicLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	c := known("cursor")
	r := scratch(t, c)
	file, behind := c.UserFile(r.Env), filepath.Join(r.Env.Home, "dotfiles.json")
	if err := os.Symlink("../dotfiles.json", file); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a link to nothing: %v", err)
	}
	write(t, behind, "{}", 0o644)
	if _, err := c.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(file); err != nil || to != "../dotfiles.json" {
		t.Errorf("the link: %q, %v", to, err)
	}
	if raw, _ := os.ReadFile(behind); !strings.Contains(string(raw), "/opt/bin/toolhost") {
		t.Errorf("behind the link: %s", raw)
	}
	if err := os.Link(behind, behind+"2"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Uninstall(t.Context(), r); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("with hard links: %v", err)
	}
}

// TestDryRun shows the change and leaves the disk alone.
func TestDryRun(t *testing.T) {
	c := known("codex")
	r := scratch(t, c)
	r.DryRun = true
	before := tree(t, r.Env.Home)
	report, err := c.Install(t.Context(), r)
	if err != nil || report.Action != Added || !strings.Contains(report.Diff, "+[mcp_servers.toolhost]\n") ||
		report.Backup != "" {
		t.Errorf("%+v, %v", report, err)
	}
	if diff := cmp.Diff(before, tree(t, r.Env.Home)); diff != "" {
		t.Errorf("something changed (-before +after):\n%s", diff)
	}
}

// TestNotHere: no file is made for a client that is not there, unless that is forced.
func TestNotHere(t *testing.T) {
	c := known("windsurf")
	r := scratch(t, known("cursor"))
	if _, err := c.Install(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "does not seem to be installed") {
		t.Errorf("got %v", err)
	}
	if _, err := known("claude-code").Install(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(r.Env.Home, ".claude")+", ") {
		t.Errorf("the paths that were looked for are not named: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.Env.Home, ".codeium")); err == nil {
		t.Error("its directory was made")
	}
	r.Force = true
	if report, err := c.Install(t.Context(), r); err != nil || report.Action != Added {
		t.Errorf("forced: %s, %v", report.Action, err)
	}
}

// TestProject edits the file in a project.
func TestProject(t *testing.T) {
	c := known("vscode")
	r := scratch(t, known("cursor"))
	r.Project = t.TempDir()
	report, err := c.Install(t.Context(), r)
	if want := filepath.Join(r.Project, ".vscode", "mcp.json"); err != nil || report.File != want {
		t.Errorf("%s, %v; want %s", report.File, err, want)
	}
	if _, err := known("claude-desktop").Install(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "no file for a project") {
		t.Errorf("got %v", err)
	}
}

// TestChangedMeanwhile: what another program wrote is not lost.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, before, after string }{
		{"changed", "{}", `{"a":1}`}, {"appeared", "", "{}"}, {"vanished", "{}", ""},
	} {
		file := filepath.Join(dir, tt.name)
		if tt.before != "" {
			write(t, file, tt.before, 0o600)
		}
		old, err := readTarget(file)
		if err != nil {
			t.Fatal(err)
		}
		if tt.after != "" {
			write(t, file, tt.after, 0o600)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := old.replace([]byte("ours"), 0o600); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if raw, _ := os.ReadFile(file); string(raw) != tt.after {
			t.Errorf("%s: the file holds %q", tt.name, raw)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*tmp")); left != nil {
			t.Errorf("%s: left %v", tt.name, left)
		}
	}
}

// TestLocked: two at a time wait for each other, and the lock's file is gone afterwards.
func TestLocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	const all = 16
	var n, inside atomic.Int32 // to the race detector a lock on a file is none
	done := make(chan error)
	for range all {
		go func() {
			done <- locked(t.Context(), file, func() error {
				defer inside.Add(-1)
				n.Add(1)
				if inside.Add(1) != 1 {
					return errors.New("two hold the lock")
				}
				return nil
			})
		}()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); n.Load() != all || len(left) > 0 {
		t.Errorf("%d of %d ran; left %v", n.Load(), all, left)
	}
	err := locked(t.Context(), file, func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return locked(ctx, file, func() error { return nil })
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another toolhost") {
		t.Errorf("got %v", err)
	}
}

// TestTokenStaysOut: the token stands in no file and no output of a client that can do without.
func TestTokenStaysOut(t *testing.T) {
	for _, c := range editable() {
		if c.HTTP == nil {
			continue
		}
		r := scratch(t, c)
		r.Server = remote
		report, err := c.Install(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		raw, _ := os.ReadFile(report.File)
		if got := strings.Contains(string(raw), remote.Token); got != c.TokenInClear() {
			t.Errorf("%s: the token stands in the file: %v", c.Name, got)
		}
		gone, err := c.Uninstall(t.Context(), r)
		if err != nil || strings.Contains(report.Diff+gone.Diff, remote.Token) {
			t.Errorf("%s: %v, or the token stands in a diff", c.Name, err)
		}
		if !c.TokenInClear() && !strings.Contains(string(raw), TokenVariable) {
			t.Errorf("%s: the variable is not named:\n%s", c.Name, raw)
		}
	}
}

// TestProgram has a stand-in for Claude Code's own command make the change.
func TestProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	c := known("claude-code")
	r := scratch(t, c)
	file := c.UserFile(r.Env)
	write(t, file, "{}", 0o600)
	program := filepath.Join(r.Env.Home, "claude")
	write(t, program, `#!/bin/sh
echo "$@" >>"$0.log"
case $2 in
add-json) printf '{"mcpServers":{"%s":%s},"n":1}' "$3" "$4" >"${0%/*}/.claude.json" ;;
remove) printf '{"n":2}' >"${0%/*}/.claude.json" ;;
esac
`, 0o755)
	r.Env.LookPath = func(string) string { return program }
	r.Server.Args = Arguments(c)
	for _, want := range []Action{Added, Unchanged} {
		if report, err := c.Install(t.Context(), r); err != nil || report.Action != want {
			t.Fatalf("%s, %v; want %s", report.Action, err, want)
		}
	}
	r.Server.Args = Arguments(c, "/r")
	if report, err := c.Install(t.Context(), r); err != nil || report.Action != Updated || report.Ran == nil {
		t.Fatalf("%+v, %v", report, err)
	}
	if report, err := c.Uninstall(t.Context(), r); err != nil || report.Action != Removed {
		t.Fatalf("%s, %v", report.Action, err)
	}
	log, _ := os.ReadFile(program + ".log")
	want := `mcp add-json toolhost {"alwaysLoad":true,"args":["stdio","--tool-search","off"],"command":"/opt/bin/toolhost","type":"stdio"} -s user
mcp remove toolhost -s user
mcp add-json toolhost {"alwaysLoad":true,"args":["stdio","--root","/r","--tool-search","off"],"command":"/opt/bin/toolhost","type":"stdio"} -s user
mcp remove toolhost -s user
`
	if diff := cmp.Diff(want, string(log)); diff != "" {
		t.Errorf("what was run (-want +got):\n%s", diff)
	}
	write(t, program, "#!/bin/sh\necho no such command; exit 3\n", 0o755)
	if _, err := c.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), "no such command") {
		t.Errorf("got %v", err)
	}
}

// TestOlderEntry: an entry that was written before a client had arguments of its own is ours. It is brought up to date, and goes as a whole.
func TestOlderEntry(t *testing.T) {
	for _, c := range editable() {
		r := scratch(t, c)
		r.Server.Args = []string{"stdio", "--root", "/r"}
		if _, err := c.Install(t.Context(), r); err != nil {
			t.Fatal(c.Name, err)
		}
		want := Unchanged
		if r.Server.Args = Arguments(c, "/r"); len(r.Server.Args) > 3 {
			want = Updated
		}
		if report, err := c.Install(t.Context(), r); err != nil || report.Action != want {
			t.Errorf("%s: %s, %v; want %s", c.Name, report.Action, err, want)
		}
		r.Server.Args = Arguments(c, "/other")
		if report, err := c.Install(t.Context(), r); err != nil || report.Action != Updated {
			t.Errorf("%s, another root: %s, %v", c.Name, report.Action, err)
		}
		if s := c.Status(r.Env, Server{Name: local.Name}); s.State != Ours {
			t.Errorf("%s: %+v", c.Name, s)
		}
		if report, err := c.Uninstall(t.Context(), r); err != nil || report.Action != Removed ||
			tree(t, r.Env.Home)[report.File] != "" {
			t.Errorf("%s: %+v, %v", c.Name, report, err)
		}
	}
}

// TestStatus tells the states apart.
func TestStatus(t *testing.T) {
	c := known("cursor")
	r := scratch(t, c)
	for _, tt := range []struct {
		body, server string
		want         State
	}{
		{"{}", "", Absent},
		{`{"mcpServers":{"toolhost":{"command":"C:\\bin\\Toolhost.EXE","args":["stdio"]}}}`, `C:\bin\Toolhost.EXE stdio`, Ours},
		{`{"mcpServers":{"toolhost":{"url":"http://localhost:8377/mcp"}}}`, "http://localhost:8377/mcp", Ours},
		{`{"mcpServers":{"toolhost":{"command":"/opt/th-1.2","args":["stdio"]}}}`, "/opt/th-1.2 stdio", Ours}, // this program
		{`{"mcpServers":{"toolhost":{"command":"npx"}}}`, "npx", Foreign},
		{`{`, "", Broken},
	} {
		write(t, c.UserFile(r.Env), tt.body, 0o600)
		s := c.Status(r.Env, Server{Name: "toolhost", Command: "/opt/th-1.2"})
		if s.State != tt.want || s.Server != tt.server || (s.Problem != "") != (tt.want == Broken) {
			t.Errorf("%s: %+v", tt.body, s)
		}
	}
}
