//go:build unix

package settle

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// kills is how often a host is killed, with -tags slow.
const kills = 60

// killVariable has the workspace and the state directory of a process that is killed, and "agent" if an agent runs in it.
const killVariable = "SETTLE_TEST_KILLED"

// TestMain runs commands until the process is killed, if a test has started it for that.
func TestMain(m *testing.M) {
	if at := os.Getenv(killVariable); at != "" {
		dir, rest, _ := strings.Cut(at, "\n")
		state, agent, _ := strings.Cut(rest, "\n")
		k := Open(state, marksIn, slog.New(slog.DiscardHandler))
		k.Recover([]string{dir})
		work := func(int) {}
		if agent != "" {
			work = agentAt(k, dir)
		}
		fmt.Print(".")
		for i := 0; ; i++ {
			work(i)
			c, _, err := k.Begin([]string{dir}, false)
			if err != nil {
				panic(err)
			}
			commandOf(dir, i)
			c.End()
			if i == 0 {
				fmt.Print(".")
			}
		}
	}
	testenv.Plain()
	os.Exit(m.Run())
}

// agentAt starts an agent, and returns a function that has it wake, change a protected file and sleep.
func agentAt(k *Keeper, dir string) func(i int) {
	var agent program
	s, err := k.Session([]string{dir}, Program{IsAgent: true, Quiet: agent.quiet, Log: func([]string) {}})
	if err != nil {
		panic(err)
	}
	return func(i int) {
		agent.writes(s, func() {
			os.WriteFile(filepath.Join(dir, ".exrc"), []byte(fmt.Sprint("agent ", i)), 0o644)
		})
		agent.sleeps(s)
	}
}

// commandOf changes protected files in each way.
func commandOf(dir string, i int) {
	at := func(rel string) string { return filepath.Join(dir, rel) }
	text := []byte(fmt.Sprint("held ", i))
	os.WriteFile(at("in-place.code-workspace"), text, 0o644)
	os.Remove(at(".mcp.json"))
	os.WriteFile(at(".mcp.json"), text, 0o644)
	os.MkdirAll(at(".idea/deep"), 0o755)
	os.WriteFile(at(".idea/deep/x"), text, 0o644)
	if i%2 == 0 {
		os.RemoveAll(at(".vscode"))
	} else {
		os.MkdirAll(at(".vscode"), 0o755)
		os.WriteFile(at(".vscode/tasks.json"), text, 0o644)
	}
}

// TestKilled kills a host at random moments of commands and exchanges: at the next start the former files stand
// outside, each once, and what a command had written is seen by the next.
func TestKilled(t *testing.T) {
	times := samples.Rounds(kills)
	for _, agent := range []string{"", "agent"} {
		t.Run("with "+agent, func(t *testing.T) { testKilled(t, agent, times) })
	}
}

func testKilled(t *testing.T, agent string, times int) {
	const outside = ".mcp.json=former .vscode/ .vscode/tasks.json=former in-place.code-workspace=former"
	g := newGround(t)
	for _, rel := range []string{".mcp.json", ".vscode/tasks.json", "in-place.code-workspace"} {
		g.write(rel, "former")
	}
	g.call(func() {})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range times {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killVariable+"="+g.dir+"\n"+g.state+"\n"+agent)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		signs := 1 // of the beginning
		if i == 0 {
			signs = 2 // and of the end of a command
		}
		if _, err := io.ReadFull(out, make([]byte, signs)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond) // the moment is what is tried, and decides nothing
		cmd.Process.Kill()
		cmd.Wait()
		g.kill()
		g.k.Recover([]string{g.dir})
		if got := strings.Replace(strings.Replace(g.tree(), ".idea/deep/ ", "", 1), ".idea/ ", "", 1); got != outside { // a directory may stay
			t.Fatalf("after kill %d outside is %s", i, got)
		}
		g.call(func() {
			if tree := g.tree(); !strings.Contains(tree, ".idea/deep/x=") {
				t.Fatalf("after kill %d the next command sees %s", i, tree)
			}
		})
	}
	if lost, _ := filepath.Glob(filepath.Join(g.dir, copyPrefix+"*")); len(lost) > 0 {
		t.Errorf("left behind: %q", lost)
	}
}
