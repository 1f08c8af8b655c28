package scripts

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

var only = flag.String("setting", "", "run the scripts in this setting only, such as stdio-2026-07-28")

// TestScriptsRunToTheirEnd: the command stop of testscript ends a script as passed, whatever follows. A script says why it does so.
func TestScriptsRunToTheirEnd(t *testing.T) {
	for _, file := range scriptFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^(\[.*\] *)?stop *$`).Match(text) {
			t.Errorf("%s: stop without a reason ends the script; shutdown ends the host", file)
		}
	}
}

func scriptFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range scriptDirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, files, err)
		}
		all = append(all, files...)
	}
	return all
}

// TestScripts runs every script of scriptDirs in one setting, and its neighbours in the others: with -tags slow in all of them.
// What a script can say is described in testdata/scripts/README.md.
func TestScripts(t *testing.T) {
	for i, s := range scriptSettings {
		if *only != "" && *only != s.String() {
			continue
		}
		var files []string
		for j, file := range scriptFiles(t) {
			if *only != "" || samples.Step(1) == 1 || j%len(scriptSettings) == i {
				files = append(files, file)
			}
		}
		t.Run(s.String(), func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files: files,
				Setup: func(env *testscript.Env) error { return setUp(env, s) },
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"host": doHost, "call": doCall, "start": doStart, "await": doAwait, "cancel": doCancel,
					"together": doTogether, "structured": doStructured, "shutdown": doShutdown, "request": doRequest,
				},
				Condition: func(name string) (bool, error) {
					switch name {
					case "stdio", "http":
						return s.Transport == name, nil
					case "modern":
						return s.Era == client.Modern, nil
					case "contained":
						return host.Contained(t), nil
					case "tun":
						_, err := os.Stat("/dev/net/tun")
						return err == nil, nil
					case "root":
						return os.Geteuid() == 0, nil
					}
					return false, fmt.Errorf("unknown condition %q", name)
				},
			})
		})
	}
}

// A play is what a running script holds.
type play struct {
	setting host.Setting
	host    *host.Host
	flags   []string
	started map[string]*client.Pending
	last    *client.Result
}

type playKey struct{}

// setUp gives a script its root, the directory ws, and a home of its own.
func setUp(env *testscript.Env, s host.Setting) error {
	ws, home := filepath.Join(env.WorkDir, "ws"), filepath.Join(env.WorkDir, "home")
	for _, dir := range []string{ws, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	env.Cd = ws
	for _, v := range host.CleanEnv(home) { // as the host has it
		name, value, _ := strings.Cut(v, "=")
		env.Setenv(name, value)
	}
	env.Setenv("WS", ws)
	env.Setenv("TOOLHOST", host.Binary)
	p := &play{setting: s, started: map[string]*client.Pending{}}
	env.Values[playKey{}] = p
	env.Defer(func() {
		if p.host != nil {
			_ = p.host.Stop() // a script that cares says shutdown
		}
	})
	return nil
}

func playOf(ts *testscript.TestScript) *play { return ts.Value(playKey{}).(*play) }

// host [FLAG]... starts the host on ws, or starts it anew with the same flags.
func doHost(ts *testscript.TestScript, neg bool, args []string) {
	p := playOf(ts)
	if p.host != nil {
		ts.Check(p.host.Stop())
	}
	if len(args) > 0 || p.flags == nil {
		p.flags = args
	}
	ctx, cancel := host.Patient()
	defer cancel()
	ws := ts.Getenv("WS")
	flags := append([]string{"--root", ws}, p.flags...)
	h, err := host.StartHost(ctx, p.setting, ws, host.CleanEnv(ts.Getenv("HOME")), flags...)
	if neg {
		if err == nil {
			ts.Fatalf("the host started")
		}
		fmt.Fprintln(ts.Stdout(), err)
		return
	}
	ts.Check(err)
	p.host = h
}

// shutdown ends the host. The name stop is that of the command of testscript that ends the script.
func doShutdown(ts *testscript.TestScript, _ bool, _ []string) {
	p := playOf(ts)
	ts.Check(p.host.Stop())
	fmt.Fprint(ts.Stdout(), p.host.Stderr)
	p.host = nil
}

// call TOOL JSON prints the text of the result; ! call expects an error.
func doCall(ts *testscript.TestScript, neg bool, args []string) {
	start(ts, "", args)
	await(ts, "", neg)
}

// start NAME TOOL JSON sends a call without waiting for it.
func doStart(ts *testscript.TestScript, _ bool, args []string) { start(ts, args[0], args[1:]) }

// await NAME waits for a call that was started.
func doAwait(ts *testscript.TestScript, neg bool, args []string) { await(ts, args[0], neg) }

func start(ts *testscript.TestScript, name string, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: TOOL JSON")
	}
	p := playOf(ts)
	ctx, cancel := host.Patient()
	ts.Defer(cancel)
	pending, err := p.host.Start(ctx, args[0], args[1], nil)
	ts.Check(err)
	p.started[name] = pending
}

func await(ts *testscript.TestScript, name string, neg bool) {
	p := playOf(ts)
	ctx, cancel := host.Patient()
	defer cancel()
	result, err := p.started[name].Result(ctx)
	delete(p.started, name)
	var refused *client.Error
	if errors.As(err, &refused) {
		result, err = &client.Result{IsError: true}, nil
		fmt.Fprintln(ts.Stdout(), refused)
	}
	ts.Check(err)
	p.last = result
	var task struct {
		ID string `json:"task_id"`
	}
	if err := json.Unmarshal(result.Structured, &task); err == nil && task.ID != "" {
		ts.Setenv("TASK", task.ID)
	}
	fmt.Fprint(ts.Stdout(), result.Text())
	if result.IsError != neg {
		ts.Fatalf("isError is %v:\n%s", result.IsError, result.Text())
	}
}

// cancel NAME tells the host that the answer is no longer wanted.
func doCancel(ts *testscript.TestScript, _ bool, args []string) {
	p := playOf(ts)
	ctx, cancel := host.Patient()
	defer cancel()
	ts.Check(p.host.Cancel(ctx, p.started[args[0]]))
	delete(p.started, args[0])
}

// together FILE sends the calls in FILE, a TOOL JSON each line, all at once, and prints their results in order.
func doTogether(ts *testscript.TestScript, neg bool, args []string) {
	p := playOf(ts)
	ctx, cancel := host.Patient()
	defer cancel()
	var all []*client.Pending
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		tool, input, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		pending, err := p.host.Start(ctx, tool, input, nil)
		ts.Check(err)
		all = append(all, pending)
	}
	for i, pending := range all {
		result, err := pending.Result(ctx)
		ts.Check(err)
		fmt.Fprintf(ts.Stdout(), "%d: %s\n", i+1, result.Text())
		if result.IsError && !neg {
			ts.Fatalf("call %d failed:\n%s", i+1, result.Text())
		}
	}
}

// structured prints the structured content of the last call.
func doStructured(ts *testscript.TestScript, _ bool, _ []string) {
	fmt.Fprintf(ts.Stdout(), "%s\n", playOf(ts).last.Structured)
}

// request METHOD [JSON] sends any request and prints its result; ! request expects a JSON-RPC error.
func doRequest(ts *testscript.TestScript, neg bool, args []string) {
	p := playOf(ts)
	ctx, cancel := host.Patient()
	defer cancel()
	var params map[string]any
	if len(args) > 1 {
		ts.Check(json.Unmarshal([]byte(args[1]), &params))
	}
	raw, err := p.host.Request(ctx, args[0], params)
	var refused *client.Error
	if errors.As(err, &refused) && neg {
		fmt.Fprintln(ts.Stdout(), refused)
		return
	}
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", raw)
	if neg {
		ts.Fatalf("%s was answered", args[0])
	}
}
