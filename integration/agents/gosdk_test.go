package agents

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/integration/host"
)

// TestGoSDK has the client of the official Go SDK speak to a host over HTTP in every protocol version that the SDK knows: it lists
// the tools, works on the disk, hears of progress, has a person asked and cancels. The client of these tests is written by those
// that write the host; this one is not.
func TestGoSDK(t *testing.T) {
	ws := host.TempDir(t)
	rules := filepath.Join(host.TempDir(t), "rules.json")
	host.Must(t, os.WriteFile(rules, []byte(`{"permissions":{"ask":["Edit(ask-*)"]}}`), 0o600))
	h, err := host.StartHost(t.Context(), host.HTTPModern, ws, host.CleanEnv(host.TempDir(t)), "--root", ws,
		"--settings", rules)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Errorf("%v\n%s", err, h.Stderr)
		}
	})
	for _, version := range mcp.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			s := newSDK(t, h, ws, version)
			s.lists(version)
			s.works()
			s.progresses()
			s.asks()
			s.cancels()
		})
	}
}

// An sdk is a session of the SDK's client.
type sdk struct {
	*testing.T
	session  *mcp.ClientSession
	ws, dir  string           // the root, and the directory in it that this session works in
	answer   mcp.ElicitResult // what a person answers
	asked    []string         // what a person was asked
	progress chan *mcp.ProgressNotificationParams
}

func newSDK(t *testing.T, h *host.Host, ws, version string) *sdk {
	t.Helper()
	s := &sdk{T: t, ws: ws, dir: version, progress: make(chan *mcp.ProgressNotificationParams, 100)}
	host.Must(t, os.Mkdir(filepath.Join(ws, version), 0o755))
	c := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			s.asked = append(s.asked, r.Params.Message)
			return &s.answer, nil
		},
		ProgressNotificationHandler: func(_ context.Context,
			r *mcp.ProgressNotificationClientRequest) {
			s.progress <- r.Params
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
	t.Cleanup(cancel)
	web := &http.Client{Transport: bearer{h.Token, &http.Transport{}}}
	var err error
	s.session, err = c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: web},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.session.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A bearer sends a token with each request.
type bearer struct {
	token string
	*http.Transport
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.Transport.RoundTrip(r)
}

func (s *sdk) lists(version string) {
	s.Helper()
	if got := s.session.InitializeResult().ProtocolVersion; got != version {
		s.Errorf("the version is %s, want %s", got, version)
	}
	list, err := s.session.ListTools(s.Context(), nil)
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "WebFetch",
		"Write"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		s.Errorf("the tools are %q, want %q", names, want)
	}
}

// call calls a tool. It returns the text of the result and whether that is an error.
func (s *sdk) call(p *mcp.CallToolParams) (text string, isError bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), host.Patience)
	defer cancel()
	r, err := s.session.CallTool(ctx, p)
	if err != nil {
		s.Fatalf("%s: %v", p.Name, err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, r.IsError
}

// holds checks what a file of the session holds; "" stands for no file.
func (s *sdk) holds(name, want string) {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join(s.ws, s.dir, name))
	if string(raw) != want || (err == nil) != (want != "") {
		s.Errorf("%s holds %q, %v; want %q", name, raw, err, want)
	}
}

func (s *sdk) write(name, content string) (text string, isError bool) {
	s.Helper()
	return s.call(&mcp.CallToolParams{Name: "Write",
		Arguments: map[string]any{"file_path": filepath.Join(s.ws, s.dir, name), "content": content}})
}

func (s *sdk) works() {
	s.Helper()
	if text, isError := s.write("a", "written\n"); isError {
		s.Error(text)
	}
	s.holds("a", "written\n")
	if text, isError := s.call(&mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "cat " + s.dir +
		"/a; exit 3"}}); !isError || !strings.Contains(text, "written") {
		s.Errorf("error %v: %s", isError, text)
	}
}

func (s *sdk) progresses() {
	s.Helper()
	p := &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "echo begun; until [ -e " + s.dir + "/heard ]; do sleep 0.01; done"}}
	p.SetProgressToken("the token")
	heard := make(chan *mcp.ProgressNotificationParams, 1)
	go func() {
		first := <-s.progress
		heard <- first
		_ = os.WriteFile(filepath.Join(s.ws, s.dir, "heard"), nil, 0o600) // without it the command runs into its time-out
	}()
	if text, isError := s.call(p); isError {
		s.Error(text)
	}
	if first := <-heard; first.ProgressToken != "the token" {
		s.Errorf("the progress is of %v", first.ProgressToken)
	}
}

// asks has a person asked, once for each answer.
func (s *sdk) asks() {
	s.Helper()
	for _, tt := range []struct {
		name   string
		answer mcp.ElicitResult
		want   string // on the disk
	}{
		{"ask-allowed", mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, "written\n"},
		{"ask-denied", mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "deny"}}, ""},
		{"ask-declined", mcp.ElicitResult{Action: "decline"}, ""},
		{"ask-cancelled", mcp.ElicitResult{Action: "cancel"}, ""},
	} {
		s.answer, s.asked = tt.answer, nil
		if text, isError := s.write(tt.name, "written\n"); isError != (tt.want == "") {
			s.Errorf("%s: error %v: %s", tt.name, isError, text)
		}
		if len(s.asked) != 1 || !strings.Contains(s.asked[0], tt.name) {
			s.Errorf("%s: a person was asked %q", tt.name, s.asked)
		}
		s.holds(tt.name, tt.want)
	}
}

// cancels gives up a command that would wait for ever.
func (s *sdk) cancels() {
	if !host.Contained(s.T) {
		return // the command is refused
	}
	s.Helper()
	fifo, pid := filepath.Join(s.dir, "never"), filepath.Join(s.ws, s.dir, "pid")
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{
			"command": "trap 'echo ended >" + s.dir + "/ended' EXIT; mkfifo " + fifo + "; echo begun >" + s.dir + "/pid; read -r line <" + fifo,
		}})
		failed <- err
	}()
	host.Eventually(s.T, func() string {
		if _, err := os.Stat(pid); err != nil {
			return err.Error()
		}
		return ""
	})
	cancel()
	if err := <-failed; err == nil {
		s.Error("a call that was given up has an answer")
	}
	host.Eventually(s.T, func() string {
		if _, err := os.Stat(filepath.Join(s.ws, s.dir, "ended")); err != nil {
			return "the command of a call that was given up goes on"
		}
		return ""
	})
}
