//go:build unix

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// A shop is a host over HTTP with several callers.
type shop struct {
	t     *testing.T
	h     *host.Host
	env   []string
	ws    string
	state string
	era   client.Era
}

// token runs the command that makes a token.
func token(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(host.Binary, append([]string{"token"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil {
		var stderr string
		if e, ok := err.(*exec.ExitError); ok {
			stderr = string(e.Stderr)
		}
		t.Fatalf("toolhost token %v: %v\n%s", args, err, stderr)
	}
	return strings.TrimSpace(string(out))
}

func openShop(t *testing.T, era client.Era, flags ...string) *shop {
	t.Helper()
	return openShopWith(t, era, nil, flags...)
}

// openShopWith is openShop with further variables in the host's environment.
func openShopWith(t *testing.T, era client.Era, env []string, flags ...string) *shop {
	t.Helper()
	testenv.NeedsNamespaces(t)
	root, err := filepath.EvalSymlinks(host.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, ws: filepath.Join(root, "ws"), env: host.CleanEnv(filepath.Join(root, "home")), era: era}
	s.state = filepath.Join(root, "home", "state", "toolhost")
	for _, dir := range []string{filepath.Join(s.ws, "sub"), filepath.Join(root, "home")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.ws, "shared.txt"), []byte("shared\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	host.MustWrite(t, filepath.Join(root, "home", "config", "toolhost", "toolhost.json"),
		`{"remote": {"linger": "100ms"}}`)
	ctx, cancel := host.Patient()
	defer cancel()
	s.h, err = host.StartHost(ctx, host.Setting{Transport: "http", Era: era}, s.ws, append(s.env, env...),
		append([]string{"--allow", "Bash"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.h.Ended {
			return
		}
		if err := s.h.Stop(); err != nil {
			t.Errorf("the host did not end well: %v", err)
		}
	})
	return s
}

// enter makes a token and connects its bearer.
func (s *shop) enter(name, rights string) *client.Conn {
	s.t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	c, err := client.HTTP(ctx, s.era, s.h.URL, token(s.t, s.ws, s.env, "add", name, "--rights", rights))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// call makes a call and returns everything that came back.
func (s *shop) call(c *client.Conn, tool string, args map[string]any, meta map[string]any) (raw string,
	r *client.Result) {
	s.t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	text, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := c.Start(ctx, tool, string(text), meta)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := p.Wait(ctx)
	if err != nil {
		return err.Error(), &client.Result{IsError: true}
	}
	r = &client.Result{}
	if err := json.Unmarshal(answer, r); err != nil {
		s.t.Fatal(err)
	}
	return string(answer), r
}

func (s *shop) bash(c *client.Conn, command string, meta map[string]any) string {
	s.t.Helper()
	raw, _ := s.call(c, "Bash", map[string]any{"command": command}, meta)
	return raw
}

type object = map[string]any

// TestPrincipalsApart lets one caller reach for what is another's.
func TestPrincipalsApart(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	for _, era := range samples.Of([]client.Era{client.Modern, client.Legacy}, 1) {
		t.Run(string(era), func(t *testing.T) {
			openShop(t, era).attack(t, held)
		})
	}
}

// attack has one caller reach for what is another's.
func (s *shop) attack(t *testing.T, held bool) {
	alice, bob, carol := s.enter("alice", "read,write,exec"), s.enter("bob",
		"read,write,exec"), s.enter("carol", "read")
	t.Run("handles", func(t *testing.T) { s.attackHandles(t, alice, bob, carol) })
	t.Run("tasks", func(t *testing.T) { s.attackTasks(t, held, alice, bob) })
	t.Run("results", func(t *testing.T) { s.attackResults(t, held, alice, bob, carol) })
	dave := s.enter("dave", "read,write,exec") // who does nothing until the others have
	if held {
		t.Run("scratch", func(t *testing.T) { s.attackScratch(t, alice, bob, dave) })
		t.Run("web", func(t *testing.T) { s.attackWeb(t, alice, bob) })
	}
	t.Run("scopes", func(t *testing.T) { s.attackScopes(t, alice, bob) })
	t.Run("forgetting", func(t *testing.T) { s.attackMemory(t, alice, bob) })
	t.Run("cancels", func(t *testing.T) { s.attackCancels(t, alice, bob) })
	s.call(dave, "Glob", object{"pattern": "*"}, nil)
	t.Run("records", func(t *testing.T) { s.checkRecords(t) })
}

// attackHandles uses the session handle of another.
func (s *shop) attackHandles(t *testing.T, alice, bob, carol *client.Conn) {
	_, r := s.call(alice, "Read", object{"file_path": "shared.txt"}, object{"toolhost/session": "new"})
	handle, _ := r.Meta["toolhost/session"].(string)
	if handle == "" {
		t.Fatalf("no handle: %+v", r)
	}
	_, unknown := s.call(bob, "Read", object{"file_path": "shared.txt"},
		object{"toolhost/session": handle[:len(handle)-4] + "AAAA"})
	for _, thief := range []*client.Conn{bob, carol} {
		_, stolen := s.call(thief, "Read", object{"file_path": "shared.txt"}, object{"toolhost/session": handle})
		if !stolen.IsError || stolen.Text() != unknown.Text() {
			t.Errorf("with another's handle: %s, with one that never was: %s", stolen.Text(), unknown.Text())
		}
	}
	if _, own := s.call(alice, "Read", object{"file_path": "shared.txt"},
		object{"toolhost/session": handle}); own.IsError {
		t.Errorf("with the own handle: %s", own.Text())
	}
}

var taskID = regexp.MustCompile(`task_[A-Z2-7]+`)

// attackTasks reads and ends the background task of another, and looks for its process.
func (s *shop) attackTasks(t *testing.T, held bool, alice, bob *client.Conn) {
	const canary = "CANARY-TASK-5521"
	_, r := s.call(alice, "Bash", object{"command": "echo " + canary + "; : marker-alice-5521; sleep 600", "run_in_background": true}, nil)
	id := taskID.FindString(r.Text())
	if id == "" {
		t.Fatalf("no task: %s", r.Text())
	}
	never := "task_" + strings.Repeat("A", len(id)-len("task_"))
	for _, tool := range []string{"TaskOutput", "TaskStop"} {
		_, stolen := s.call(bob, tool, object{"task_id": id}, nil)
		_, unknown := s.call(bob, tool, object{"task_id": never}, nil)
		if !stolen.IsError || strings.ReplaceAll(stolen.Text(), id, never) != unknown.Text() {
			t.Errorf("%s of another's task: %s; of none: %s", tool, stolen.Text(), unknown.Text())
		}
	}
	if held {
		if seen := s.bash(bob, `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; done 2>/dev/null | grep -c 'marker-alic[e]-5521'`, nil); !strings.Contains(seen, `"text":"Exit code 1\n0`) && !strings.Contains(seen, `"0\n`) && !strings.Contains(seen, `\n0\n`) {
			t.Errorf("another's process is seen: %s", seen)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
	defer cancel()
	for {
		raw, out := s.call(alice, "TaskOutput", object{"task_id": id, "block": false}, nil)
		if !strings.Contains(raw, "The task is running") {
			t.Fatalf("the task has ended: %s", raw)
		}
		if strings.Contains(out.Text(), canary) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the task says nothing: %s", raw)
		}
	}
	if _, r := s.call(alice, "TaskStop", object{"task_id": id}, nil); r.IsError {
		t.Errorf("the own task cannot be ended: %s", r.Text())
	}
}

var keptFile = regexp.MustCompile(`/[^\s"\\:]*/results/[^\s"\\:]*`)

// attackResults reads a result of another that is kept in a file, in every way there is.
func (s *shop) attackResults(t *testing.T, held bool, alice, bob, carol *client.Conn) {
	// The canary is put together by the command, so that no refusal repeats it.
	raw := s.bash(alice, `for i in $(seq 6000); do echo "line $i CANARY-""RESULT-$((5000+521))"; done`, nil)
	file := strings.TrimRight(keptFile.FindString(raw), ".,)")
	if file == "" {
		t.Fatalf("no file was kept: %s", host.Clip(raw, 800))
	}
	const canary = "CANARY-RESULT-5521"
	if raw, r := s.call(alice, "Read", object{"file_path": file, "limit": 3}, nil); r.IsError ||
		!strings.Contains(raw, canary) {
		t.Fatalf("the own result cannot be read: %s", raw)
	}
	dir := filepath.Dir(file)
	pattern := object{"pattern": "CANARY.RESULT"}
	with := func(base object, key string, value any) object {
		out := object{key: value, "output_mode": "content"}
		for k, v := range base {
			out[k] = v
		}
		return out
	}
	type attempt struct {
		tool string
		args object
	}
	attempts := []attempt{
		{"Read", object{"file_path": file}}, {"Read", object{"file_path": filepath.Join(s.ws, "../home/state/toolhost/results", strings.TrimPrefix(file, filepath.Join(s.state, "results")))}},
		{"Read", object{"file_path": "/proc/self/root" + file}},
		{"Grep", with(pattern, "path", file)}, {"Grep", with(pattern, "path", dir)}, {"Grep", with(pattern, "path", s.state)},
		{"Glob", object{"pattern": "**/*", "path": dir}}, {"Glob", object{"pattern": dir + "/*"}},
	}
	for _, thief := range []*client.Conn{bob, carol} {
		for _, a := range attempts {
			if raw, r := s.call(thief, a.tool, a.args, nil); strings.Contains(raw, canary) || a.tool == "Glob" &&
				!r.IsError && strings.Contains(raw, filepath.Base(file)) {
				t.Errorf("%s %v tells: %s", a.tool, a.args, host.Clip(raw, 400))
			}
		}
	}
	if !held {
		return
	}
	for _, command := range []string{
		"cat " + file, "head -c 200 " + file, "ln -sf " + file + " link; cat link; rm -f link", "ln " + file + " hard && cat hard",
		"cp " + file + " copy && cat copy", "grep -rh CANARY.RESULT " + s.state, "ls -la " + dir, "cat " + dir + "/*", "tar cf - " + dir + " | strings",
		"cat " + s.state + "/token", "cat " + s.state + "/tokens.json", "cat " + s.state + "/audit.jsonl", "cat " + s.state + "/secret | od -c",
		"python3 -c \"print(open('" + file + "').read(300))\"", "find " + filepath.Dir(s.ws) + " -name '" + filepath.Base(file) + "' -exec head -c 200 {} +",
	} {
		raw := s.bash(bob, command, nil)
		if strings.Contains(raw, canary) || strings.Contains(raw, s.h.Token) || strings.Contains(raw, `sha256`) ||
			strings.Contains(raw, "token:alice") {
			t.Errorf("%s tells: %s", command, host.Clip(raw, 400))
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("another's result is gone: %v", err)
	}
}

// attackScratch looks for the temporary files of another: one whose sandbox was there first, and one who comes later.
func (s *shop) attackScratch(t *testing.T, alice, bob, dave *client.Conn) {
	s.bash(bob, "true", nil) // his sandbox is there before the files of the others
	for name, c := range map[string]*client.Conn{"alice": alice, "dave": dave} {
		made := s.bash(c, `echo "CANARY-""TEMP-$((5000+521))" >"$TMPDIR/secret.txt"; cat "$TMPDIR/secret.txt"; echo "at $TMPDIR at"`, nil)
		at := strings.Split(made, " at")
		if !strings.Contains(made, "CANARY-TEMP-5521") || len(at) < 2 {
			t.Fatalf("%s has no directory for temporary files: %s", name, made)
		}
		_, dir, _ := strings.Cut(made, "at ")
		dir, _, _ = strings.Cut(dir, " at")
		for _, command := range []string{
			"cat " + dir + "/secret.txt", "ls -la " + dir, "find ~/.cache ~/.local -name 'secret*' -exec cat {} +",
			"grep -rs CANARY.TEMP ~/.cache ~/.local",
			"cp " + dir + "/secret* stolen; cat stolen; rm -f stolen", "echo x >>" + dir + "/secret.txt; tail -2 " + dir + "/secret.txt", "rm -rf " + dir,
		} {
			if raw := s.bash(bob, command, nil); strings.Contains(raw, "CANARY-TEMP") {
				t.Errorf("%s of %s tells: %s", command, name, host.Clip(raw, 400))
			}
		}
		if _, r := s.call(bob, "Read", object{"file_path": dir + "/secret.txt"}, nil); strings.Contains(r.Text(),
			"CANARY-TEMP") {
			t.Errorf("the temporary file of %s is read: %s", name, r.Text())
		}
		if raw := s.bash(c, `cat "$TMPDIR/secret.txt"`, nil); !strings.Contains(raw, "CANARY-TEMP-5521") ||
			strings.Contains(raw, `5521\nx`) {
			t.Errorf("the temporary file of %s has changed: %s", name, raw)
		}
	}
}

// attackScopes names the conversation of another, and so its working directory and what it has read.
func (s *shop) attackScopes(t *testing.T, alice, bob *client.Conn) {
	for n, key := range []string{"threadId", "openai/session", "vscode.conversationId", "claudecode/sessionId"} {
		file := fmt.Sprintf("scope%d.txt", n)
		if err := os.WriteFile(filepath.Join(s.ws, file), []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		meta := func() object { return object{key: "the same"} }
		s.bash(alice, "cd sub", meta())
		if raw := s.bash(bob, "pwd", meta()); strings.Contains(raw, "/ws/sub") {
			t.Errorf("%s: the working directory of another: %s", key, raw)
		}
		s.call(alice, "Read", object{"file_path": file}, meta())
		if _, r := s.call(bob, "Edit", object{"file_path": file, "old_string": "one", "new_string": "two"},
			meta()); !r.IsError {
			t.Errorf("%s: what another has read counts: %s", key, r.Text())
		}
		if _, r := s.call(alice, "Edit", object{"file_path": file, "old_string": "one", "new_string": "three"},
			meta()); r.IsError {
			t.Errorf("%s: what was read does not count: %s", key, r.Text())
		}
	}
}

// attackMemory makes more conversations than are remembered at once: what another has read in hers must not be forgotten for them.
func (s *shop) attackMemory(t *testing.T, alice, bob *client.Conn) {
	if err := os.WriteFile(filepath.Join(s.ws, "remembered.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.call(alice, "Read", object{"file_path": "remembered.txt"}, nil)
	for n := range 600 {
		s.call(bob, "Read", object{"file_path": "remembered.txt"}, object{"claudecode/sessionId": fmt.Sprint(n)})
	}
	if _, r := s.call(alice, "Edit", object{"file_path": "remembered.txt", "old_string": "one", "new_string": "two"},
		nil); r.IsError {
		t.Errorf("what was read is forgotten: %s", r.Text())
	}
}

// attackCancels cancels every request that another could have in flight.
func (s *shop) attackCancels(t *testing.T, alice, bob *client.Conn) {
	ctx, cancel := host.Patient()
	defer cancel()
	for _, name := range []string{"cancel.started", "cancel.go"} {
		_ = os.Remove(filepath.Join(s.ws, name))
	}
	p, err := alice.Start(ctx, "Bash", `{"command":"touch cancel.started; until [ -e cancel.go ]; do sleep 0.02; done; echo finished"}`, object{"threadId": "cancel"})
	if err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(filepath.Join(s.ws, "cancel.started")); err != nil {
			return "the command has not started"
		}
		return ""
	})
	for id := int64(0); id <= p.ID+2; id++ {
		if err := bob.Cancel(ctx, &client.Pending{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.ws, "cancel.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Result(ctx); err != nil || r.IsError || !strings.Contains(r.Text(), "finished") {
		t.Errorf("another has cancelled the call: %+v, %v", r, err)
	}
}

// checkRecords looks whether each call is on record under who made it, and whether the history is kept apart.
func (s *shop) checkRecords(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(s.state, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		var rec struct{ Principal, Tool string }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		seen[rec.Principal]++
	}
	for _, name := range []string{"token:alice", "token:bob", "token:carol", "token:dave"} {
		if seen[name] == 0 {
			t.Errorf("no call of %s is on record: %v", name, seen)
		}
	}
	if len(seen) != 4 {
		t.Errorf("the calls on record are of %v", seen)
	}
	if strings.Contains(string(raw), "th_") {
		t.Error("the record holds a token")
	}
}
