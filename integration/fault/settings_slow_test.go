//go:build slow && linux

package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestFaultSettings swaps the settings in a loop while calls run, in bursts, of which each answer begins one. What every version denies is
// denied at every moment, by every way there is, and what none denies works: while they cannot be parsed the last good ones stay in force.
func TestFaultSettings(t *testing.T) {
	testenv.NeedsNamespaces(t)
	g := newGround(t)
	secret := host.NewTag()
	g.Put("secret.txt", secret+"\n")
	g.Put("open.txt", "number 0\n")
	file := g.Put(".claude/settings.json", "{}")
	rules := func(more string) string {
		return `{"permissions": {"deny": ["Read(secret.txt)", "Edit(secret.txt)"` + more + `]}}`
	}
	versions := []string{rules(""), rules(`, "Read(other.txt)"`), rules(`, "Bash(rm:*)", "Write(x/**)"`),
		`{"permissions": {"deny": [`}
	for _, sandboxed := range []bool{true, false} {
		if sandboxed && !host.Contained(t) {
			continue
		}
		host.Must(t, os.WriteFile(file, []byte(versions[0]), 0o644))
		s := g.start(host.StdioModern, g.settings(sandboxed)...)
		s.MustCall("Read", host.Args{"file_path": "open.txt"}) // the settings have been read once: an empty file is then one that is being written
		done, answered := make(chan struct{}), make(chan struct{}, 1)
		var swapper, callers sync.WaitGroup
		swaps := 0
		swapper.Go(func() {
			for rest := 0; ; swaps++ {
				if rest--; rest < 0 { // a command gets no shell for as long as its settings are replaced sooner than one is started
					select {
					case <-done:
						return
					case <-answered:
						rest = rand.IntN(100)
					}
				}
				if err := swapSettings(file, versions[swaps%len(versions)], swaps%2 == 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
		rounds := samples.Rounds(40)
		for i, a := range settingsCalls(sandboxed) {
			callers.Go(func() {
				for range rounds {
					if err := a.make(s, fmt.Sprint("settings ", i), secret); err != nil {
						t.Errorf("contained=%v: %v", sandboxed, err)
						return
					}
					select {
					case answered <- struct{}{}:
					default: // there are swaps to come
					}
				}
			})
		}
		callers.Wait()
		close(done)
		swapper.Wait()
		t.Logf("contained=%v: %d swaps", sandboxed, swaps)
		host.Must(t, swapSettings(file, versions[0], true))
		s.MustCall("Read", host.Args{"file_path": "open.txt"})
		s.End()
	}
}

// A settingsCall is a call that works or does not under every version of the settings.
type settingsCall struct {
	tool  string
	args  host.Args
	works bool
}

// make makes the call and holds that it works as it should, and shows no secret.
func (c settingsCall) make(s *session, name, secret string) error {
	p, err := s.Start(s.Ctx, c.tool, c.args.String(), host.Conversation(name))
	if err != nil {
		return err
	}
	r, err := p.Result(s.Ctx)
	if err != nil {
		return err
	}
	text := r.Text()
	// The file that the sandbox covers was just replaced.
	busy := strings.Contains(text, "cannot start its sandbox")
	switch {
	case strings.Contains(text, secret), c.tool == "Glob" && strings.Contains(text, "secret.txt"):
		return fmt.Errorf("%s %s shows what is denied: %s", c.tool, c.args, text)
	case r.IsError == c.works && !busy:
		return fmt.Errorf("%s %s: error %v: %s", c.tool, c.args, r.IsError, text)
	}
	return nil
}

func settingsCalls(sandboxed bool) []settingsCall {
	all := []settingsCall{
		{"Read", host.Args{"file_path": "secret.txt"}, false},
		{"Grep", host.Args{"pattern": "toolhost-tag", "output_mode": "content"}, true},
		{"Bash", host.Args{"command": "cat secret.txt; cat s*.txt"}, false},
		{"Glob", host.Args{"pattern": "*.txt"}, true},
		{"Read", host.Args{"file_path": "open.txt"}, true},
	}
	if sandboxed { // no rule on the text finds this one; the sandbox has to hold it
		all = append(all, settingsCall{"Bash", host.Args{"command": "f=$(echo secr); cat ${f}et.txt; true"}, true})
	}
	return all
}

// swapSettings replaces a file by a rename or, as many editors do, in place.
func swapSettings(file, content string, byRename bool) error {
	if !byRename {
		return os.WriteFile(file, []byte(content), 0o644)
	}
	temp := filepath.Join(filepath.Dir(file), "new")
	for {
		if err := os.WriteFile(temp, []byte(content), 0o644); err != nil {
			return err
		}
		err := os.Rename(temp, file)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// A command has just ended. It may have made the file for all that is known, so it was held.
	}
}

// TestFaultKillTrust kills the command that writes which workspaces are trusted. Trust that was given stays, and the
// list can be read; what is left of a killed one is at most its temporary file.
func TestFaultKillTrust(t *testing.T) {
	g := newGround(t)
	var given []string
	took, killed := 200*time.Millisecond, 0
	for n := range samples.Rounds(25) {
		name := fmt.Sprintf("w%d", n%50)
		dir := filepath.Dir(filepath.Dir(g.Put(name+"/.claude/settings.json",
			fmt.Sprintf(`{"permissions": {"allow": ["Bash(run %d:*)"]}}`, n))))
		given = slices.DeleteFunc(given, func(d string) bool { return d == dir }) // its content is another now
		cmd := exec.Command(host.Binary, "trust", "--yes", "--state-dir", g.State, dir)
		cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
		begun := time.Now()
		host.Must(t, cmd.Start())
		timer := time.AfterFunc(rand.N(took+took/4), func() {
			if n > 0 { // the first shows how long it takes
				_ = cmd.Process.Kill()
			}
		})
		err := cmd.Wait()
		timer.Stop()
		switch {
		case err == nil:
			given = append(given, dir)
			took = time.Since(begun)
		case cmd.ProcessState.ExitCode() == -1:
			killed++
		default:
			t.Fatalf("trust: %v", err)
		}
		list, err := g.Run("trust", "--list", "--json")
		host.Must(t, err)
		if !json.Valid(list) {
			t.Fatalf("the list of trust is torn: %s", list)
		}
		for _, d := range given {
			if !strings.Contains(string(list), `"`+d+`"`) {
				t.Errorf("after kill %d, %s is not trusted any more: %s", killed, d, list)
			}
		}
	}
	left := g.Left()
	if len(left) > killed {
		t.Errorf("%d kills left behind: %q", killed, left)
	}
	t.Logf("%d of the commands were killed, which left %d files of a few hundred bytes; one takes %v", killed,
		len(left), took)
}
