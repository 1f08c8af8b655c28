package clients

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
	"github.com/toolhost/toolhost/guard/hostprogram"
)

const (
	// VerifyPatience is how long a client may work for the fake model.
	VerifyPatience = 60 * time.Second
	// endPatience is how long a client may take to end after the model has finished.
	endPatience = 2 * time.Second
	// maxOutput is how many bytes of a client's output are kept.
	maxOutput = 2000
	// maxRepeats is how often a client may ask for a call without sending the result of the previous one.
	maxRepeats = 3
)

// ErrNoBaseURL is returned for a client that cannot use a fake model.
var ErrNoBaseURL = errors.New("it cannot be verified")

// A Trial says how a client is run with a fake model.
type Trial struct {
	// Args are the arguments for a run without a person, and Env its environment. {url} stands for the address of the
	// model, {dir} for the project, and {key} for the key that the model requires. {key} must not be in Args, because
	// other users can see these.
	Args []string
	Env  object
	// Files are files that the client finds: a text, or the value of a JSON file.
	Files object
}

// The states of the canary, a file that only toolhost's rules deny.
const (
	Held     = "held"
	Leaked   = "leaked"
	NotTried = "not tried"
)

// A Verdict is the result of verifying a client.
type Verdict struct {
	Client  string `json:"client"`
	Version string `json:"version"`
	Offered struct {
		// Ours are our tools in the first request; Own are the client's own tools for files, commands and the web.
		Ours []string `json:"ours"`
		Own  []string `json:"own"`
	} `json:"offered"`
	// Deferred are our tools that the model has to search for. Missing are those that it does not get.
	Deferred []string `json:"deferred"`
	Missing  []string `json:"missing"`
	Canary   string   `json:"canary"`
	// Bytes is the length of the definitions of Ours.
	Bytes int  `json:"bytes"`
	OK    bool `json:"ok"`

	// LeakedBy are the tools whose results contained the canary.
	LeakedBy []string `json:"-"`
	// Problem says why the client ended early, or is nil.
	Problem error `json:"-"`
}

// A trial is one run of a client.
type trial struct {
	client         Client
	home, project  string
	canary, secret string
	key            string        // required by the model, because other users can connect to it
	done           chan struct{} // closed when the model has finished
	mu             sync.Mutex
	verdict        *Verdict
	asked          bool // the offered tools were recorded
	plan           []fakemodel.Call
	repeats        int
}

// Verify runs the client in a new directory with a fake model, with toolhost installed as r says. It reports which
// tools the model gets, and whether the client can do what only our rules deny.
func (c Client) Verify(ctx context.Context, r Request) (*Verdict, error) {
	if c.Verifies == nil {
		return nil, fmt.Errorf("%s: %w: %s", c.Title, ErrNoBaseURL, c.Unverified)
	}
	program := r.Env.LookPath(c.Program)
	if program == "" {
		return nil, fmt.Errorf("%s is not installed here: there is no program %s on the PATH", c.Title, c.Program)
	}
	dir, err := os.MkdirTemp("", "toolhost-verify-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := &trial{
		client: c, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), secret: rand.Text(),
		key: rand.Text(), done: make(chan struct{}),
		verdict: &Verdict{Client: c.Name, Deferred: []string{}, Missing: []string{}, Canary: NotTried},
	}
	t.verdict.Offered.Ours, t.verdict.Offered.Own = []string{}, []string{}
	t.canary = filepath.Join(t.project, "canary.txt")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	url := "http://" + listener.Addr().String()
	if err := t.prepare(ctx, r, url); err != nil {
		return nil, fmt.Errorf("preparing the trial: %w", err)
	}
	model := &http.Server{Handler: t.keyed(fakemodel.Model(t.next)), ReadHeaderTimeout: VerifyPatience}
	go func() { _ = model.Serve(listener) }() // ends when model is closed
	defer model.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, VerifyPatience,
		fmt.Errorf("%s did not end within %s", c.Title, VerifyPatience))
	defer cancel()
	argv := append([]string{program}, filled(c.Verifies.Args, nil, t.names(url)).([]string)...)
	if r.Run {
		argv = append([]string{r.Server.Command, "run", "--allow-host=" + listener.Addr().String(), "--"}, argv...)
	}
	t.run(ctx, program, url, argv)
	v := t.verdict
	v.OK = v.Problem == nil && len(v.Deferred)+len(v.Missing) == 0 && v.Canary == Held
	return v, nil
}

// prepare creates the home directory of the trial, with the client's configuration, toolhost in it, and our rules.
// The settings by which the user has switched its own tools off are copied from the user's files.
func (t *trial) prepare(ctx context.Context, r Request, url string) error {
	off := t.client
	if !r.Replace && !r.Run {
		var err error
		if off.Replaces, err = t.client.chosen(r.Env); err != nil {
			return err
		}
	}
	r.Env.Home, r.Env.Getenv = t.home, func(string) string { return "" }
	r.Env.LookPath = func(string) string { return "" } // edit the file: the client's own command takes seconds
	r.Backups, r.Force, r.Project, r.DryRun = Backups{Dir: filepath.Join(t.home, "backups")}, true, "", false
	const denied = "Read(//**/canary.txt)"
	switch {
	case r.Remote != "":
		r.Server.Args = RemoteArguments(t.client, r.Remote, append(r.Options, "--deny="+denied), nil)
	case t.client.InProject:
		r.Server.Args = Arguments(t.client)
	default:
		r.Server.Args = Arguments(t.client, t.project)
	}
	files := append(object{{key: "$SUPPORT/toolhost/toolhost.json",
		value: object{{key: "permissions", value: object{{key: "deny", value: []string{denied}}}}}}},
		t.client.Verifies.Files...)
	for _, f := range files {
		content := filled(f.value, nil, t.names(url))
		raw, err := json.Marshal(plain(content))
		if text, ok := content.(string); ok {
			raw = []byte(text)
		}
		if err == nil {
			err = writeNew(r.Env.path(f.key), raw)
		}
		if err != nil {
			return err
		}
	}
	if err := writeNew(t.canary, []byte(t.secret+"\n")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(t.home, "tmp"), newDirMode); err != nil {
		return err
	}
	if !r.Run { // toolhost run creates an entry itself
		if _, err := t.client.Install(ctx, r); err != nil {
			return err
		}
	}
	if !r.Run {
		if _, err := off.Replace(ctx, r); err != nil {
			return err
		}
	}
	list := t.command(ctx, r.Server.Command, t.environment(url), "tools", "--json")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the tools that are served: %w", err)
	}
	var served struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(out, &served); err != nil {
		return fmt.Errorf("listing the tools that are served: %w", err)
	}
	for _, tool := range served.Tools {
		t.verdict.Missing = append(t.verdict.Missing, tool.Name)
	}
	return nil
}

func writeNew(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), newDirMode); err != nil {
		return err
	}
	return os.WriteFile(path, raw, newFileMode)
}

// keyed refuses requests without the key, in whichever header or parameter the API has it, so that only the client
// affects the verdict.
func (t *trial) keyed(model http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(fmt.Sprint(r.Header, r.URL.RawQuery), t.key) {
			http.Error(w, "the key is missing", http.StatusUnauthorized)
			return
		}
		model.ServeHTTP(w, r)
	})
}

func (t *trial) names(url string) *strings.Replacer {
	return strings.NewReplacer("{url}", url, "{key}", t.key, "{dir}", t.project, "{home}", t.home)
}

// kept are the variables of this process that a client gets. The last ones are for connections to targets.
var kept = []string{"PATH", "LANG", "SystemRoot", "ComSpec", "PATHEXT", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG"}

// nowhere is the address of a proxy that does not exist, so that no client waits for another machine.
const nowhere = "http://127.0.0.1:9"

// environment returns the client's environment. Only the kept variables come from the user's environment.
func (t *trial) environment(url string) []string {
	env := []string{
		"HOME=" + t.home, "USERPROFILE=" + t.home, "APPDATA=" + filepath.Join(t.home, "AppData", "Roaming"), "LOCALAPPDATA=" + filepath.Join(t.home, "AppData", "Local"),
		"TMPDIR=" + filepath.Join(t.home, "tmp"), "TEMP=" + filepath.Join(t.home, "tmp"), "NO_COLOR=1", "CI=1",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
	}
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, f := range filled(t.client.Verifies.Env, nil, t.names(url)).(object) {
		text, ok := f.value.(string)
		if !ok { // a configuration as JSON
			raw, _ := json.Marshal(plain(f.value)) // strings
			text = string(raw)
		}
		env = append(env, f.key+"="+text)
	}
	return env
}

// run runs the client with argv until it ends, the model has finished, or ctx ends. It leaves none of its processes.
func (t *trial) run(ctx context.Context, program, url string, argv []string) {
	whole := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	release := adoptOrphans()
	defer release()
	env, printed, told := t.environment(url), &tail{}, make(chan struct{})
	go func() { // in a separate home, because the first start may migrate files; it may take longer than the trial
		out, _ := t.command(whole, program, append(env, "HOME="+filepath.Dir(t.home)), "--version").Output() // "" if it fails
		t.verdict.Version = string(versionNumber.Find(out))
		close(told)
	}()
	cmd := t.command(ctx, argv[0], env, argv[1:]...)
	cmd.Stdout, cmd.Stderr = printed, printed
	go func() { // ends a client that does not end by itself
		select {
		case <-t.done:
			time.AfterFunc(endPatience, stop)
		case <-ctx.Done():
		}
	}()
	err := cmd.Run()
	<-told
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.done:
		return
	default:
	}
	if whole.Err() != nil {
		err = context.Cause(whole)
	}
	what := "before it offered tools to its model"
	if t.asked {
		what = "before the model was done"
	}
	t.verdict.Problem = fmt.Errorf("%s ended %s: %w\n%s", t.client.Title, what,
		cmp.Or(err, errors.New("exit status 0")), printed)
}

// versionNumber matches the version in what clients print.
var versionNumber = regexp.MustCompile(`\d+(\.\d+)+([-+]\w+)*`)

func (t *trial) command(ctx context.Context, program string, env []string, args ...string) *exec.Cmd {
	cmd := hostprogram.Command(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.project, hostprogram.Clean(env), time.Second
	return cmd
}

// A tail keeps the last bytes written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(0, len(p)-maxOutput):]...)
	t.text = t.text[max(0, len(t.text)-maxOutput):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "")) }
