//go:build slow

package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A stateFault is what is wrong with a state directory.
type stateFault struct {
	name string
	// begin makes it so, and returns what ends it.
	begin func(t *testing.T, g *ground) (end func())
	// errno is what the kernel answers to locks of files there; 0 if there are some.
	errno syscall.Errno
	// forgets says that older changes may give way to new ones.
	forgets bool
	// says is what a command that is refused says.
	says string
}

var stateFaults = []stateFault{
	{name: "none", begin: func(*testing.T, *ground) func() { return func() {} }},
	{name: "version before", begin: unsealed},
	{name: "another user", begin: givenAway, says: "another user|permission denied"},
	{name: "read-only", begin: func(t *testing.T, g *ground) func() {
		host.ReadOnlyMount(t, g.State)
		return func() { host.Must(t, unix.Mount("", g.State, "", unix.MS_REMOUNT|unix.MS_BIND, "")) }
	}, says: "read-only"},
	{name: "full", begin: func(t *testing.T, g *ground) func() {
		filler := host.Fill(t, g.State, 0)
		return func() { host.Must(t, os.Remove(filler)) }
	}, forgets: true, says: "no space|free some space|was forgotten|no change"},
	{name: "no locks", begin: func(*testing.T, *ground) func() { return func() {} }, errno: syscall.ENOLCK, says: "no locks available"},
}

// seal matches that of a file, which the version before did not write.
var seal = regexp.MustCompile(`,?(?:\{"_sealed":"[0-9a-f]{64}"\}|"_sealed":"[0-9a-f]{64}")`)

func unsealed(t *testing.T, g *ground) func() {
	n := 0
	eachFile(t, g.State, func(path string, _ int64) {
		text, err := os.ReadFile(path)
		host.Must(t, err)
		if before := seal.ReplaceAll(text, nil); !bytes.Equal(before, text) {
			host.Must(t, os.WriteFile(path, before, 0o600))
			n++
		}
	})
	if n == 0 {
		t.Error("no file has a seal")
	}
	return func() {}
}

func givenAway(t *testing.T, g *ground) func() {
	give := func(id int) {
		eachFile(t, g.State, func(path string, _ int64) { host.Must(t, os.Lchown(path, id, id)) })
	}
	give(65534)
	return func() { give(0) }
}

// prepare makes a program of the binary under a fault. The caller calls begun when it has started.
func (f *stateFault) prepare(g *ground, args ...string) (cmd *exec.Cmd, begun func() error) {
	cmd = exec.Command(host.Binary, args...)
	cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
	if f.errno == 0 {
		return cmd, func() error { return nil }
	}
	in, begun := g.inject(cmd)
	in.arm(1, true, []uintptr{unix.SYS_FLOCK}, failing(f.errno), g.State)
	return cmd, begun
}

// stateCommands read every store, and change some.
const stateCommands = "history; history usage; diff ID; log; rules; status; doctor; agent list; token list; keep --list; " +
	"check Bash command=ls; token add ci --rights read; trust --yes; trust --list; undo --yes"

// stateCalls use every store of files and commands.
var stateCalls = []stateCall{
	{"Read", host.Args{"file_path": "a.txt"}},
	{"Edit", host.Args{"file_path": "a.txt", "old_string": "number 1", "new_string": "number 2"}},
	{"Write", host.Args{"file_path": "new.txt", "content": "x\n"}},
	{"Bash", host.Args{"command": "echo made >made.txt; seq 20000"}},
	{"Bash", host.Args{"command": "echo in the background", "run_in_background": true}},
	{"Grep", host.Args{"pattern": "number"}},
}

// TestStateFaults meets every fault of the state directory with a host and with the commands. Work goes on, or is
// refused with the reason; when the fault has ended, all that was kept is there.
func TestStateFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting, and giving files away, take root")
	}
	for _, f := range stateFaults {
		t.Run(f.name, func(t *testing.T) {
			g := &ground{host.NewGround(t)}
			host.Must(t, os.MkdirAll(g.State, 0o700))
			host.Tmpfs(t, g.State, "size=16m,mode=700")
			kept := useEveryStore(t, g)
			id := g.changes()[0].ID
			before := g.kept(kept, id)
			end := f.begin(t, g)
			f.work(t, g, stateCalls)
			for _, command := range strings.Split(stateCommands, "; ") {
				f.command(t, g, strings.Fields(strings.Replace(command, "ID", id, 1)))
			}
			end()
			if f.forgets {
				delete(before, "diff")
				id = ""
			}
			after := g.kept(kept, id)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("lost (-before +after):\n%s", diff)
			}
			s := g.start(host.StdioModern)
			s.MustCall("Read", host.Args{"file_path": "a.txt"})
			s.MustCall("Write", host.Args{"file_path": "a.txt", "content": "again\n"})
			s.End()
		})
	}
}

// command runs a command of the binary under a fault, and reports whether it succeeds.
func (f *stateFault) command(t *testing.T, g *ground, args []string) bool {
	t.Helper()
	cmd, begun := f.prepare(g, append(slices.Clone(args), "--state-dir", g.State)...)
	var out host.LockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	host.Must(t, cmd.Start())
	host.Must(t, begun())
	err := cmd.Wait()
	t.Logf("%q: %v\n%s", args, err, host.Clip(out.String(), 1500))
	f.judge(t, strings.Join(args, " "), out.String(), err != nil)
	return err == nil
}

// judge looks at what a program says under a fault.
func (f *stateFault) judge(t *testing.T, who, said string, failed bool) {
	t.Helper()
	if strings.Contains(said, "panic:") || strings.Contains(said, "goroutine ") {
		t.Errorf("%s: %s", who, said)
	}
	if says := regexp.MustCompile("(?i)" + f.says); failed && (f.says == "" || !says.MatchString(said)) {
		t.Errorf("%s fails, and does not say why (%s):\n%s", who, f.says, said)
	}
}

// A stateCall is a call under a fault.
type stateCall struct {
	tool string
	args host.Args
}

// work makes a host work under a fault, if it starts, and returns what it logs.
func (f *stateFault) work(t *testing.T, g *ground, calls []stateCall) string {
	h := &host.Host{Stderr: &host.LockedBuffer{}}
	cmd, begun := f.prepare(g, "stdio", "--root", g.WS, "--state-dir", g.State)
	h.Cmd, cmd.Stderr = cmd, h.Stderr
	var err error
	h.Conn, err = client.Stdio(t.Context(), client.Modern, cmd)
	host.Must(t, errors.Join(err, begun()))
	t.Cleanup(func() { _ = h.Cmd.Process.Kill() })
	s := &session{&host.Session{Host: h, T: t, Ctx: t.Context()}}
	for _, c := range calls {
		text, failed := s.Try(c.tool, c.args)
		t.Logf("%s: %v %s", c.tool, failed, host.Clip(text, 300))
		f.judge(t, c.tool, text, failed)
	}
	if err := s.Stop(); err != nil {
		f.judge(t, "the end of the host", err.Error()+s.Stderr.String(), true)
	}
	t.Logf("log:\n%s", host.Clip(s.Stderr.String(), 3000))
	f.judge(t, "the log", s.Stderr.String(), false)
	return s.Stderr.String()
}

// useEveryStore makes a host and the commands keep something in each store, and returns the path of a kept result.
func useEveryStore(t *testing.T, g *ground) (result string) {
	g.Put("a.txt", "number 0\n")
	host.MustWrite(t, filepath.Join(g.WS, ".claude", "settings.json"), `{"permissions":{"allow":["Bash(touch *)"]}}`)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"}} {
		out, err := exec.Command("git", append([]string{"-C", g.WS}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	g.toolhost("trust", "--yes")
	g.toolhost("token", "add", "deploy", "--rights", "read")
	s := g.start(host.StdioModern, "--with", "EnterWorktree,ExitWorktree")
	s.MustCall("Read", host.Args{"file_path": "a.txt"})
	s.MustCall("Edit", host.Args{"file_path": "a.txt", "old_string": "number 0", "new_string": "number 1"})
	text := s.MustCall("Bash", host.Args{"command": "seq 20000"})
	result = regexp.MustCompile(regexp.QuoteMeta(g.State) + `/results/\S+\.txt`).FindString(text)
	s.MustCall("Bash", host.Args{"command": "echo by a command >c.txt"})
	s.MustCall("Bash", host.Args{"command": "echo in the background", "run_in_background": true})
	for _, c := range []struct {
		tool string
		args host.Args
	}{
		{"EnterWorktree", host.Args{"name": "side"}}, {"Write", host.Args{"file_path": "kept.txt", "content": "x"}},
		{"ExitWorktree", host.Args{"keep": true}},
	} {
		p, err := s.Start(s.Ctx, c.tool, c.args.String(), host.Conversation("exact"))
		host.Must(t, err)
		if r, err := p.Result(s.Ctx); err != nil || r.IsError {
			t.Fatalf("%s: %v %s", c.tool, err, r.Text())
		}
	}
	s.End()
	g.toolhost("mode", "plan", regexp.MustCompile(`threadId:\w+`).FindString(g.toolhost("history")))
	return result
}

// since matches the time in a line of trust --list.
var since = regexp.MustCompile(` +since .*`)

// kept is what the stores hold that must not be lost: a change with its content, worktrees, trust, tokens, a result.
func (g *ground) kept(result, id string) map[string]string {
	g.T.Helper()
	trees, err := filepath.Glob(filepath.Join(g.State, "worktrees", "*", "*"))
	host.Must(g.T, err)
	all := map[string]string{"result": host.Get(g.T, result), "worktrees": strings.Join(trees, "\n"),
		"rules": g.toolhost("rules"), "trusted": since.ReplaceAllString(g.toolhost("trust", "--list"), "")}
	if id != "" {
		all["diff"] = g.toolhost("diff", id)
	}
	if !strings.Contains(g.toolhost("token", "list"), "deploy") {
		g.T.Error("the token is lost")
	}
	return all
}

// TestSweepKilled kills a host at each system call by which it removes what is old in its stores. The next host works,
// what is listed is whole, and nothing that is being removed is left.
func TestSweepKilled(t *testing.T) {
	g := newGround(t)
	useEveryStore(t, g)
	old := time.Now().Add(-400 * 24 * time.Hour)
	host.Must(t, filepath.WalkDir(g.State, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.Type()&fs.ModeSymlink != 0:
			return err
		case d.Name() == "tidied":
			return os.Remove(path)
		}
		return os.Chtimes(path, old, old)
	}))
	kept := filepath.Join(host.TempDir(t), "kept")
	copyState := func(from, to string) {
		host.Must(t, os.RemoveAll(to))
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	copyState(g.State, kept)
	stations, step := 0, samples.Step(9)
	for station := 1; station < mostStations && g.killSweep(station); station += step {
		stations++
		s := g.start(host.StdioModern)
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		s.End()
		if log := s.Stderr.String(); log != "" {
			t.Errorf("station %d: the next host says\n%s", station, log)
		}
		for _, c := range g.changes() {
			g.toolhost("diff", c.ID)
		}
		eachFile(t, g.State, func(path string, _ int64) {
			if strings.Contains(path, "/.removed-") || strings.HasSuffix(path, ".damaged") {
				t.Errorf("station %d: left is %s", station, path)
			}
		})
		copyState(kept, g.State)
	}
	if t.Logf("killed at %d stations", stations); stations == 0 {
		t.Error("nothing was removed")
	}
}

// killSweep kills a host when it removes something for the station-th time. False: it removes less.
func (g *ground) killSweep(station int) bool {
	g.T.Helper()
	h := &host.Host{Stderr: &host.LockedBuffer{}}
	h.Cmd = exec.Command(host.Binary, "stdio", "--root", g.WS, "--state-dir", g.State)
	h.Cmd.Dir, h.Cmd.Env, h.Cmd.Stderr = g.WS, host.CleanEnv(g.Home), h.Stderr
	in, started := g.inject(h.Cmd)
	in.arm(station, false, []uintptr{unix.SYS_UNLINKAT, unix.SYS_RENAMEAT}, func() syscall.Errno {
		_ = h.Cmd.Process.Kill()
		return 0
	}, g.State)
	var err error
	h.Conn, err = client.Stdio(g.T.Context(), client.Modern, h.Cmd)
	host.Must(g.T, errors.Join(err, started()))
	_, _ = h.Call(g.T.Context(), "Read", host.Args{"file_path": "a.txt"}.String()) // unless it is killed before
	_ = h.Stop()
	return in.disarm() > 0
}

// A sharedCall is a call of TestStoresShared, which makes a file.
type sharedCall struct {
	tool, command, said string
	begun, ended        time.Time
}

// TestStoresShared lets two hosts and the commands use the stores at once. All work, and all that they keep is there.
func TestStoresShared(t *testing.T) {
	g := newGround(t)
	host.MustWrite(t, filepath.Join(g.WS, ".claude", "settings.json"), `{"permissions":{"allow":["Bash(touch *)"]}}`)
	const rounds = 15
	var working sync.WaitGroup
	var mu sync.Mutex
	calls := map[string]sharedCall{} // by the name of the file
	hosts := map[string]*session{"a": g.start(host.StdioModern), "b": g.start(host.StdioModern)}
	for _, s := range hosts {
		defer s.End()
		s.covered()
	}
	for name, s := range hosts {
		call := func(tool, file string, args host.Args) {
			c := sharedCall{tool: tool, begun: time.Now()}
			c.command, _ = args["command"].(string)
			r, err := s.Call(s.Ctx, tool, args.String())
			if err != nil || r.IsError {
				t.Errorf("%s %s: %v %s", tool, file, err, r.Text())
				return
			}
			c.said, c.ended = r.Text(), time.Now()
			mu.Lock()
			defer mu.Unlock()
			calls[file] = c
		}
		working.Go(func() {
			for i := range rounds {
				path := fmt.Sprint(name, i)
				call("Write", path, host.Args{"file_path": path, "content": path})
				call("Bash", "by-command-"+path, host.Args{"command": "seq 20000; echo x >by-command-" + path})
			}
		})
	}
	for i := range rounds {
		working.Go(func() {
			for _, command := range []string{"history", "history usage", "trust --yes", "rules", "keep --list", "status", "log",
				"history purge --older-than 300d --yes", fmt.Sprintf("token add t%d --rights read", i)} {
				if out, err := g.Run(strings.Fields(command)[0], strings.Fields(command)[1:]...); err != nil {
					t.Errorf("%s: %v %s", command, err, out)
				}
			}
		})
	}
	working.Wait()
	g.eachRecorded(calls)
	if n := strings.Count(g.toolhost("token", "list"), " read "); n != rounds {
		t.Errorf("%d tokens of %d", n, rounds)
	}
}

// eachRecorded holds that the file of each call is in the entry of that call once, and else only in those of commands
// that ran at the same time as the command that made it.
func (g *ground) eachRecorded(calls map[string]sharedCall) {
	g.T.Helper()
	var entries []struct {
		Tool, Command string
		Files         []struct{ Path string }
	}
	host.Must(g.T, json.Unmarshal([]byte(g.toolhost("history", "--json", "--limit", "0")), &entries))
	commands, recorded := map[string]sharedCall{}, map[string]int{}
	for _, c := range calls {
		commands[c.command] = c
	}
	for _, e := range entries {
		for _, f := range e.Files {
			name := filepath.Base(f.Path)
			c, ran := calls[name], commands[e.Command]
			switch {
			case c.tool == e.Tool && c.command == e.Command:
				recorded[name]++
			case c.tool != "Bash" || e.Tool != "Bash" || c.ended.Before(ran.begun) || ran.ended.Before(c.begun):
				g.T.Errorf("the entry of %s %q has %s", e.Tool, e.Command, name)
			}
		}
	}
	for name, c := range calls {
		if n := recorded[name]; n != 1 {
			g.T.Errorf("the history has %s %d times, and its call said: %s", name, n, c.said[max(0, len(c.said)-500):])
		}
	}
}

// TestStateOfAnotherUser gives each entry of the state directory to another user: the host says so, and does not use what is there.
func TestStateOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	g := useStores(t)
	entries, err := os.ReadDir(g.State)
	host.Must(t, err)
	for _, e := range entries {
		path := filepath.Join(g.State, e.Name())
		host.Must(t, os.Lchown(path, 65534, 65534))
		s := g.start(host.StdioModern)
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		s.End()
		if log := s.Stderr.String(); !strings.Contains(log, path+" belongs to another user") {
			t.Errorf("%s: the host does not say that it belongs to another user:\n%s", e.Name(), log)
		}
		host.Must(t, os.Lchown(path, 0, 0))
	}
}
