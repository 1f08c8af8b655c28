package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/tools/txtar"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/integration/testenv"
)

// startPlain starts the process of a server without a sandbox.
func startPlain(_ context.Context, _, _ string, spec builtin.ServerSpec) (*builtin.ServerProcess, error) {
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Env = spec.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Files[0], spec.Files[1], spec.Files[2]
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	return &builtin.ServerProcess{Done: done, Kill: func() error { err := cmd.Process.Kill(); <-done; return err },
		Enter: func() (func(), error) { return func() {}, nil }}, nil
}

// A bench is a gateway over fakes, driven by the lines of a script.
type bench struct {
	t       *testing.T
	g       *Gateway
	dir     string
	entries []*Entry
	last    builtin.Result
	err     error
	asked   string      // the params of the last question
	forms   int         // how many questions were asked
	effect  string      // of the last call
	as      string      // the caller, the local user at first
	pages   bool        // the client shows the addresses of pages
	done    chan string // pages that the client was told to be done
}

// newBench makes a gateway of the servers of a script: the file "server" or "server NAME" holds what it does.
func newBench(t *testing.T, archive *txtar.Archive, over string) *bench {
	b := &bench{t: t, dir: t.TempDir(), as: localPrincipal, done: make(chan string, 8)}
	for _, file := range archive.Files {
		name, ok := strings.CutPrefix(file.Name, "server")
		if !ok {
			continue
		}
		e := &Entry{Name: "s", Trust: User, Type: over, File: "test"}
		if name = strings.TrimSpace(name); name != "" {
			e.Name = name
		}
		if over == typeHTTP {
			s := httptest.NewServer(newFake(string(file.Data), nil))
			t.Cleanup(s.Close)
			e.URL = s.URL
		} else {
			e.Command, e.Env = os.Args[0], map[string]string{fakeVariable: string(file.Data) + "\n#"}
		}
		if strings.Contains(string(archive.Comment), "project") {
			e.Trust = Project
		}
		b.entries = append(b.entries, e)
	}
	for _, file := range archive.Files {
		if name, ok := strings.CutPrefix(file.Name, "entry"); ok {
			for _, e := range b.entries {
				if name = strings.TrimSpace(name); name == "" || name == e.Name {
					if err := json.Unmarshal(file.Data, e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	b.open()
	return b
}

func (b *bench) open() {
	b.g = Open(Config{
		MayRun:  func(guard.HostCommand) error { return nil },
		Servers: func() ([]*Entry, []string) { return b.entries, nil }, Dir: filepath.Join(b.dir, "servers"),
		Start:   startPlain,
		Changed: func(*Gateway, bool) {}, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	b.t.Cleanup(func() { b.g.Close() })
}

// listed are the names of the tools on the list.
func (b *bench) listed() (names []string) {
	for _, d := range b.g.Tools() {
		if !d.Unlisted {
			names = append(names, strings.TrimPrefix(d.Name, "mcp__"))
		}
	}
	return names
}

func (b *bench) call(ctx context.Context, name, args string) {
	b.last, b.err = builtin.Result{}, fmt.Errorf("there is no tool %s", name)
	for _, d := range b.g.Tools() {
		if d.Name != "mcp__"+name {
			continue
		}
		b.bound(ctx, d, args)
	}
}

// bound makes a call of a tool.
func (b *bench) bound(ctx context.Context, d *builtin.Def, args string) {
	var call *builtin.Call
	if call, b.err = d.Bind(json.RawMessage(args)); b.err != nil {
		return
	}
	var plan builtin.Plan
	if plan, b.err = call.Plan(ctx, b.env()); b.err == nil {
		b.effect = fmt.Sprintf("%T%v", plan.Intent.Effects[0], plan.Intent.Effects[0])
		b.last, b.err = plan.Run(ctx)
	}
}

// env is that of each call: of one conversation, whose person answers questions.
func (b *bench) env() *builtin.Env {
	elicit := func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		b.asked = string(params)
		b.forms++
		return filled(params), nil
	}
	return &builtin.Env{Runtime: openRuntime(b.t), Principal: b.as, Scope: "one", Client: builtin.Client{
		Elicit: elicit, OpensPages: b.pages, PageDone: func(id string) { b.done <- id }}}
}

// openRuntime opens what calls share.
func openRuntime(t *testing.T) *builtin.Runtime {
	box, err := builtin.OpenRuntime(builtin.RuntimeConfig{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

// noReader drops the result of a call.
func noReader(context.Context, *builtin.Env, json.RawMessage) (builtin.Result, error) {
	return builtin.Result{}, nil
}

// filled fills in a form: with "Ann", 7, true, or the first choice.
func filled(params json.RawMessage) json.RawMessage {
	var form struct {
		RequestedSchema struct {
			Properties map[string]struct {
				Type  string
				Enum  []string
				Items struct{ Enum []string }
			}
		}
	}
	if err := json.Unmarshal(params, &form); err != nil {
		panic(err)
	}
	content := map[string]any{}
	for name, field := range form.RequestedSchema.Properties {
		content[name] = map[string]any{"string": "Ann", "number": 7, "integer": 7, "boolean": true}[field.Type]
		switch {
		case field.Enum != nil:
			content[name] = field.Enum[0]
		case field.Items.Enum != nil:
			content[name] = field.Items.Enum[:1]
		}
	}
	return marshal(map[string]any{"action": "accept", "content": content})
}

// run runs the lines of the file "test".
func (b *bench) run(lines string) {
	for line := range strings.Lines(lines) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "", "#":
		case "wait":
			b.g.Wait(b.t.Context())
		case "settle": // until all looks have ended
			b.g.Look()
			<-b.g.first
		case "list":
			if got := strings.Join(b.listed(), " "); got != rest {
				b.t.Errorf("list:\n got %s\nwant %s", got, rest)
			}
		case "forms":
			if got := fmt.Sprint(b.forms); got != rest {
				b.t.Errorf("%s questions were asked, want %s", got, rest)
			}
		case "asked":
			if !strings.Contains(b.asked, rest) {
				b.t.Errorf("asked: want %q, got %q", rest, b.asked)
			}
		case "until": // the list is this
			for end := time.Now().Add(20 * time.Second); strings.Join(b.listed(),
				" ") != rest; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					b.t.Fatalf("the list stays %v", b.listed())
				}
			}
		case "tried": // what `toolhost mcp list` says of a server
			name, rest, _ := strings.Cut(rest, " ")
			for _, s := range b.g.TryAll(b.t.Context()) {
				if text := s.State + " " + s.Reason; s.Name == name && !strings.Contains(text, rest) {
					b.t.Errorf("%s: want %q, got %q", name, rest, text)
				}
			}
		case "noise": // the error of a first call
			name, rest, _ := strings.Cut(rest, " ")
			if _, _, err := b.use(name, "ann", "one"); err == nil || !strings.Contains(err.Error(), rest) {
				b.t.Errorf("noise of %s: want %q, got %v", name, rest, err)
			}
		case "as":
			b.as = rest
		case "done": // the client was told that this page is done
			if got := <-b.done; got != rest {
				b.t.Errorf("done: %s, want %s", got, rest)
			}
		case "pages":
			b.pages = true
		case "wait-resources":
			b.g.Consults(b.as).Wait(b.t.Context(), "")
		case "prompts":
			var names []string
			for _, p := range b.g.Consults(b.as).Prompts() {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != rest {
				b.t.Errorf("prompts:\n got %s\nwant %s", got, rest)
			}
		case "resources":
			var names []string
			for _, r := range b.g.Consults(b.as).Resources() {
				names = append(names, r.URI)
			}
			for _, r := range b.g.Consults(b.as).Templates() {
				names = append(names, r.URITemplate.Raw())
			}
			if got := strings.Join(names, " "); got != rest {
				b.t.Errorf("resources:\n got %s\nwant %s", got, rest)
			}
		case "skills":
			var names []string
			for _, k := range b.g.Consults(b.as).Skills() {
				names = append(names, k.Name()+" "+k.URI+" "+k.Description())
			}
			if got := strings.Join(names, " "); got != rest {
				b.t.Errorf("skills:\n got %s\nwant %s", got, rest)
			}
		case "get":
			rest, args, _ := strings.Cut(rest, " ")
			b.last, b.err = builtin.Result{}, fmt.Errorf("there is no prompt %s", rest)
			for _, p := range b.g.Consults(b.as).Prompts() {
				if p.Name == rest {
					b.bound(b.t.Context(), p.Def(), cmp.Or(args, "{}"))
				}
			}
		case "complete":
			name, value, _ := strings.Cut(rest, " ")
			of := Completion{Argument: mcp.CompleteArgument{Name: "a", Value: value},
				Context: mcp.CompleteContext{Arguments: map[string]string{"b": "c"}}}
			if of.Prompt = name; strings.Contains(name, "://") {
				of.Prompt, of.Template = "", name
			}
			plan, err := b.g.Consults(b.as).Complete(b.env(), of)
			if b.last, b.err = (builtin.Result{}), err; err == nil {
				b.effect = fmt.Sprintf("%T%v", plan.Intent.Effects[0], plan.Intent.Effects[0])
				b.last, b.err = plan.Run(b.t.Context())
			}
		case "read":
			plan, err := b.g.Consults(b.as).Read(b.env(), "", rest)
			if b.last, b.err = (builtin.Result{}), err; err == nil {
				b.effect = fmt.Sprintf("%T%v", plan.Intent.Effects[0], plan.Intent.Effects[0])
				b.last, b.err = plan.Run(b.t.Context())
			}
		case "got":
			if got := string(marshal(b.last.Passed)); !strings.Contains(got, rest) {
				b.t.Errorf("got: want %q, got %s", rest, got)
			}
		case "effect":
			if !strings.Contains(b.effect, rest) {
				b.t.Errorf("effect: want %q, got %s", rest, b.effect)
			}
		case "review":
			changes, err := b.g.Review("s")
			if text := fmt.Sprintf("%+v %v", changes, err); !strings.Contains(text, rest) {
				b.t.Errorf("review: want %q, got %s", rest, text)
			}
		case "call":
			name, args, _ := strings.Cut(rest, " ")
			if args == "" {
				args = "{}"
			}
			b.call(b.t.Context(), name, args)
		case "want":
			if text := b.last.Text; b.err != nil || !strings.Contains(text, rest) {
				b.t.Errorf("want %q, got %.500q, error %v", rest, text, b.err)
			}
		case "error":
			if b.err == nil || !strings.Contains(b.err.Error(), rest) {
				b.t.Errorf("error: want %q, got %.300q, error %v", rest, b.last.Text, b.err)
			}
		case "state":
			name, state, _ := strings.Cut(rest, " ")
			for _, s := range b.g.Servers() {
				if s.Name == name && s.State != state {
					b.t.Errorf("the state of %s is %s (%s), want %s", name, s.State, s.Reason, state)
				}
			}
		case "problem":
			all := ""
			for _, s := range b.g.Servers() {
				all += strings.Join(s.Problems, "\n") + s.Reason
			}
			if !strings.Contains(all, rest) {
				b.t.Errorf("problem: want %q, got %s", rest, all)
			}
		case "shown":
			if d := b.g.Tools()[0]; d.Doc != rest+" " && d.Doc != rest && string(d.RawSchema) != rest {
				b.t.Errorf("shown: want %q, got %q %s", rest, d.Doc, d.RawSchema)
			}
		case "accept":
			var changes []Change
			if changes, b.err = b.g.Review(rest); b.err == nil {
				b.err = b.g.Accept(rest, changes)
			}
		case "show":
			if changes, err := b.g.Review(rest); err != nil || b.g.Shown(rest, changes) != nil {
				b.t.Error(err)
			}
		case "stop":
			for _, s := range b.g.sorted() {
				b.stopAll(s)
			}
		default:
			b.t.Fatalf("no such line: %s", line)
		}
	}
}

func (b *bench) stopAll(s *server) {
	b.g.mu.Lock()
	all := []*upstream{}
	for _, u := range b.g.live {
		if u.srv == s {
			all = append(all, u)
		}
	}
	b.g.mu.Unlock()
	for _, u := range all {
		u.stop()
	}
}

// TestServers runs the scripts in testdata against fakes. A script whose first line names transports runs over these only.
func TestServers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		over := strings.Fields(strings.SplitN(string(archive.Comment), "\n", 2)[0])
		for _, transport := range []string{typeStdio, typeHTTP} {
			if !slices.Contains(over, transport) {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+transport, func(t *testing.T) {
				t.Parallel()
				if filepath.Base(file) == "noise.txtar" {
					testenv.NotShort(t, "waits for a server that says nothing")
				}
				b := newBench(t, archive, transport)
				for _, f := range archive.Files {
					if f.Name == "test" {
						b.run(string(f.Data))
					}
				}
			})
		}
	}
}
