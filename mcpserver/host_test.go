package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

func TestMain(m *testing.M) {
	testenv.Plain()
	os.Exit(withHome(m.Run))
}

// emptyHome is the home directory of tests that write nothing to theirs.
var emptyHome string

// withHome runs cut off from the developer's own settings, and with one cache directory for all hosts, so that only the first tries
// what the machine can contain.
func withHome(run func() int) int {
	dir, err := os.MkdirTemp("", "toolhost-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	emptyHome = filepath.Join(dir, "home")
	if err := os.Mkdir(emptyHome, 0o700); err != nil {
		panic(err)
	}
	homeAt(emptyHome, func(name, value string) { os.Setenv(name, value) })
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return run()
}

func homeAt(dir string, set func(name, value string)) {
	set("HOME", dir)
	set("USERPROFILE", dir)
	set("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
}

// ownHome returns a home directory of this test, which cannot be parallel.
func ownHome(t *testing.T) string {
	t.Helper()
	if os.Getenv("HOME") == emptyHome {
		homeAt(t.TempDir(), t.Setenv)
	}
	return os.Getenv("HOME")
}

// openHost opens a host on a root with the given files.
func openHost(t testing.TB, files map[string]string, change ...func(*Config)) (*Host, string) {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		writeFile(t, filepath.Join(root, name), content)
	}
	cfg := Config{Roots: []string{root}, StateDir: filepath.Join(t.TempDir(), "state")}
	for _, f := range change {
		f(&cfg)
	}
	h, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, root
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// do makes one call in the scope of the stdio process.
func do(h *Host, tool, args string) Reply {
	return h.Call(context.Background(), h.Admit(Local(), nil, "", true),
		Request{Tool: tool, Args: json.RawMessage(args)})
}

func TestCallIsRecordedWhateverBecomesOfIt(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"},
		func(c *Config) { c.AuditLog = log; c.Deny = []string{"Read(secret)"} })
	for _, call := range [][2]string{
		{"Read", `{"file_path":"a.txt"}`}, {"Read", `{"file_path":"secret"}`}, {"Read", `{"wrong":1}`},
		{"Nothing", `{}`}, {"Edit", `{"file_path":"a.txt","old_string":"a","new_string":"a"}`},
	} {
		do(h, call[0], call[1])
	}
	a := h.Admit(Local(), map[string]any{scope.MetaHandle: "forged"}, "", true)
	h.Call(context.Background(), a, Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a.txt"}`)})
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "\n"); n != 6 {
		t.Errorf("%d records of 6 calls:\n%s", n, raw)
	}
}

func TestCallWithoutGate(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"})
	a := h.Admit(Local(), nil, "", true)
	ctx, cancel := context.WithCancel(context.Background())
	blocker := h.Admit(Local(), nil, "", true)
	cancel()
	// The first is ahead of the blocker, so it runs although its client has gone: Read ends at once.
	if r := h.Call(ctx, a, Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a.txt"}`)}); !r.IsError {
		t.Errorf("a cancelled Read answered %q", r.Text)
	}
	blocker.Leave()
	if !a.scope.Gate.Idle() {
		t.Error("a place in the queue was not given up")
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	h, _ := openHost(t, nil)
	do(h, "Glob", `{"pattern":"*"}`) // what contains commands is asked once
	h.runtime = nil                  // a defect: the tools find nothing to work with
	r := do(h, "Glob", `{"pattern":"*"}`)
	h.runtime, _ = builtin.OpenRuntime(builtin.RuntimeConfig{Log: h.log})
	if !r.IsError || !strings.Contains(r.Text, "defect of toolhost") {
		t.Errorf("%+v", r)
	}
	if r := do(h, "Glob", `{"pattern":"*"}`); r.IsError {
		t.Errorf("after a panic: %s", r.Text)
	}
}

func TestStateDirectoryIsDoneWithout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "not a directory")
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"},
		func(c *Config) { c.StateDir = filepath.Join(file, "state") })
	if r := do(h, "Read", `{"file_path":"a.txt"}`); r.IsError {
		t.Error(r.Text)
	}
	if r := do(h, "Write", `{"file_path":"a.txt","content":"b\n"}`); r.IsError {
		t.Error(r.Text)
	}
}

// A result is as long as it may be at most also where the whole of it cannot be kept, and says so.
func TestLongResultThatCannotBeKept(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": strings.Repeat("a line of text\n", 10_000)})
	results := filepath.Join(h.cfg.StateDir, "results")
	if err := errors.Join(os.RemoveAll(results), os.WriteFile(results, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := do(h, "Grep", `{"pattern":"line","output_mode":"content","head_limit":0}`)
	if r.IsError || len(r.Text) > 30_000 || !strings.Contains(r.Text, "The whole was not kept: ") {
		t.Errorf("%d bytes: %.200s", len(r.Text), r.Text)
	}
}

func TestNoHostWithoutRootOrWithWrongTool(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no root":      {},
		"a wrong one":  {Roots: []string{filepath.Join(t.TempDir(), "none")}, StateDir: t.TempDir()},
		"the machine":  {Roots: []string{"/"}, StateDir: t.TempDir()},
		"a wrong tool": {Roots: []string{t.TempDir()}, StateDir: t.TempDir(), Tools: []string{"Nothing"}},
	} {
		if h, err := Open(cfg); err == nil {
			t.Errorf("%s: a host was opened", name)
			h.Close()
		}
	}
}

func BenchmarkDispatchRead(b *testing.B) {
	h, _ := openHost(b, map[string]string{"a.txt": strings.Repeat("a line of text\n", 200)})
	for b.Loop() {
		if r := do(h, "Read", `{"file_path":"a.txt"}`); r.IsError {
			b.Fatal(r.Text)
		}
	}
}

func BenchmarkDispatchEdit(b *testing.B) {
	h, _ := openHost(b, map[string]string{"a.txt": "state: one\n" + strings.Repeat("a line of text\n", 200)})
	do(h, "Read", `{"file_path":"a.txt"}`)
	from, to := "one", "two"
	for b.Loop() {
		r := do(h, "Edit", `{"file_path":"a.txt","old_string":"state: `+from+`","new_string":"state: `+to+`"}`)
		if r.IsError {
			b.Fatal(r.Text)
		}
		from, to = to, from
	}
}

// scopesOf is how many scopes a host remembers.
func scopesOf(h *Host) (n int) {
	for _, of := range h.scopes.Count() {
		n += of
	}
	return n
}

// Sessions come and go; nothing of them stays.
func TestLifecyclesLeaveAFlatHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	lifecycles := samples.Rounds(1_000)
	h, _ := openHost(t, map[string]string{"a.txt": strings.Repeat("a line\n", 100)})
	run := func(n int) {
		for i := range n {
			session := fmt.Sprintf("session-%d", i)
			a := h.Admit(Local(), nil, session, false)
			if r := h.Call(t.Context(), a, Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a.txt"}`)}); r.IsError {
				t.Fatal(r.Text)
			}
			h.scopes.EndSession(LocalPrincipal, session)
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run(500) // fills what is bounded
	before := heap()
	run(lifecycles)
	after := heap()
	t.Logf("%d lifecycles: heap %d KB, then %d KB; %d scopes are left", lifecycles, before>>10, after>>10, scopesOf(h))
	if grown := after - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if scopesOf(h) != 0 {
		t.Errorf("%d scopes are left", scopesOf(h))
	}
}

// TestWarmed: a host reports that it has prepared for commands, and a web server prepares for the principal of its configuration.
func TestWarmed(t *testing.T) {
	t.Parallel()
	warmed := make(chan struct{}, 2)
	h, _ := openHost(t, nil, func(c *Config) { c.OnWarm = func() { warmed <- struct{}{} } })
	h.Warm(LocalPrincipal)
	<-warmed
	serveWeb(t, h, func(c *httpserver.Config) { c.Warm = TokenPrincipal })
	<-warmed
}
