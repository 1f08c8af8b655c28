//go:build linux

package fault

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A victim is a file that is changed while its host is killed. Its content tells how many changes it has seen, and is torn if it
// cannot: every content is made of its number alone.
type victim struct {
	name    string
	tool    string
	inPlace bool // it is written in place, so that only the next start makes it whole
	content func(n int) string
	change  func(path string, n int) host.Args // makes content n of content n-1

	acked, tried int
}

// bulk makes contents so long that a kill can come in the middle of writing one.
func bulk(n, size int) string {
	line := strings.Repeat(fmt.Sprintf("words of %d ", n), 100) + "\n"
	return strings.Repeat(line, size/len(line))
}

func victims() []*victim {
	edited := func(n int) string { return fmt.Sprintf("number %d\n%s", n, bulk(0, 200_000)) }
	edit := func(path string, n int) host.Args {
		return host.Args{"file_path": path, "old_string": fmt.Sprintf("number %d\n", n-1),
			"new_string": fmt.Sprintf("number %d\n", n)}
	}
	written := func(n int) string { return fmt.Sprintf("number %d\n%s", n, bulk(n, 100_000+n%7*150_000)) }
	write := func(path string, n int) host.Args { return host.Args{"file_path": path, "content": written(n)} }
	notebook := func(n int) string {
		return fmt.Sprintf(`{"cells":[{"cell_type":"code","execution_count":null,"id":"a","metadata":{},"outputs":[],"source":["number %d"]}],`+
			`"metadata":{"note":%q},"nbformat":4,"nbformat_minor":5}`+"\n", n, bulk(0, 100_000))
	}
	cell := func(path string, n int) host.Args {
		return host.Args{"notebook_path": path, "cell_id": "a", "new_source": fmt.Sprintf("number %d", n)}
	}
	return []*victim{
		{name: "renamed/edited.txt", tool: "Edit", content: edited, change: edit},
		{name: "renamed/written.txt", tool: "Write", content: written, change: write},
		{name: "linked/written.txt", tool: "Write", content: written, change: write, inPlace: true},
		{name: "linked/edited.txt", tool: "Edit", content: edited, change: edit, inPlace: true},
		{name: "renamed/book.ipynb", tool: "NotebookEdit", content: notebook, change: cell},
	}
}

var numbered = regexp.MustCompile(`number (\d+)`)

// number tells which content it is.
func (v *victim) number(content string) (int, error) {
	m := numbered.FindStringSubmatch(content)
	if m == nil {
		return 0, fmt.Errorf("%s is torn: %.60q… of %d bytes", v.name, content, len(content))
	}
	n, err := strconv.Atoi(m[1])
	if v.tool == "NotebookEdit" {
		if !json.Valid([]byte(content)) {
			err = fmt.Errorf("%s is torn: no JSON, %d bytes", v.name, len(content))
		}
	} else if content != v.content(n) {
		err = fmt.Errorf("%s is torn: it begins with number %d, and has %d bytes", v.name, n, len(content))
	}
	return n, err
}

// lay makes the files of victims.
func (g *ground) lay(all []*victim) {
	g.T.Helper()
	for _, v := range all {
		path := g.Put(v.name, v.content(0))
		if !v.inPlace {
			continue
		}
		if err := os.Link(path, path+".other"); err != nil {
			g.T.Skip("no hard links here:", err)
		}
	}
}

// check holds that the file is what the last acknowledged change made of it, or the one under way.
func (v *victim) check(t *testing.T, path string) {
	t.Helper()
	n, err := v.number(host.Get(t, path))
	switch {
	case err != nil:
		t.Error(err)
	case n != v.acked && n != v.tried:
		t.Errorf("%s holds number %d; %d was acknowledged and %d under way", v.name, n, v.acked, v.tried)
	}
	v.acked, v.tried = n, n
}

// batter changes the file until the host is gone.
func (v *victim) batter(s *session, path string, acked chan<- struct{}) error {
	meta := host.Conversation(v.name)
	for first := true; ; first = false {
		tool, a := v.tool, v.change(path, v.tried+1)
		if first {
			tool, a = "Read", host.Args{"file_path": path}
		} else {
			v.tried++
		}
		p, err := s.Start(s.Ctx, tool, a.String(), meta)
		if err != nil {
			return nil
		}
		var r *client.Result
		if r, err = p.Result(s.Ctx); err != nil {
			return nil
		}
		if r.IsError {
			return fmt.Errorf("%s of %s: %s", tool, v.name, r.Text())
		}
		if !first {
			v.acked = v.tried
			acked <- struct{}{}
		}
	}
}

// TestFaultKill kills the host while it changes files, each in a conversation of its own.
func TestFaultKill(t *testing.T) {
	g := newGround(t)
	all := victims()
	g.lay(all)
	kills, total := 0, 0
	for ; kills < samples.Rounds(10) && !t.Failed(); kills++ {
		total += killedRound(t, g, all)
	}
	g.checkHistory(t, g.WS)
	t.Logf("%d kills, %d acknowledged changes", kills, total)
}

// killedRound starts a host, changes files, kills it and looks. It returns how many changes were acknowledged.
func killedRound(t *testing.T, g *ground, all []*victim) int {
	s := g.start(host.StdioModern)
	acked := make(chan struct{})
	var batter sync.WaitGroup
	for _, v := range all {
		batter.Go(func() {
			if err := v.batter(s, g.Path(v.name), acked); err != nil {
				t.Error(err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { batter.Wait(); close(ended) }()
	count, last := 0, 1+rand.IntN(25)
	for alive := true; alive; {
		select {
		case <-acked:
			if count++; count == last {
				time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() { _ = s.Cmd.Process.Kill() })
			}
		case <-ended:
			alive = false
		}
	}
	s.Kill()
	for _, v := range all {
		if !v.inPlace {
			v.check(t, g.Path(v.name))
		}
	}
	g.checkHistory(t, g.Path("renamed"), "--limit", fmt.Sprint(max(count, lately))) // of the others it takes longer, see there
	for _, v := range all {
		if v.inPlace {
			g.mend(v)
			v.check(t, g.Path(v.name))
		}
	}
	g.Tidy()
	return count
}

// A change is one line of the history.
type change struct {
	ID, Path, State string
	Before, After   string // digests
}

// history lists the changes of a file, or of all, oldest last.
func (g *ground) history(flags ...string) []change {
	g.T.Helper()
	raw, err := g.Run("history", append([]string{"--json", "--limit", "100000"}, flags...)...)
	if err != nil {
		g.T.Fatal(err)
	}
	var calls []struct {
		ID, State string
		Files     []struct {
			Path, Change  string
			Before, After struct{ SHA256 string }
		}
	}
	if err := json.Unmarshal(raw, &calls); err != nil {
		g.T.Fatalf("%v: %s", err, raw)
	}
	var all []change
	for _, c := range calls {
		for _, f := range c.Files {
			all = append(all, change{c.ID, f.Path, c.State, f.Before.SHA256, f.After.SHA256})
		}
	}
	return all
}

// correct waits until a start has made whole what was torn while it was written in place. See tidy for why the first may not do.
func (g *ground) mend(v *victim) {
	g.T.Helper()
	host.Eventually(g.T, func() string {
		if _, err := v.number(host.Get(g.T, g.Path(v.name))); err != nil {
			g.history("--path", g.State)
			return err.Error()
		}
		return ""
	})
}

// lately is how many changes a round looks back at least; those before were looked at before.
const lately = 100

// checkHistory holds that every change below a path has ended, that those of a file are a chain, and that its end is what the file
// holds. Being a start like any other, it makes whole first what was torn. Where a file has several names the command looks through the
// whole machine for them.
func (g *ground) checkHistory(t *testing.T, below string, flags ...string) {
	t.Helper()
	var all []change
	host.Eventually(t, func() string { // see tidy
		all = g.history(append(flags, "--path", below)...)
		if i := slices.IndexFunc(all, func(c change) bool { return c.State == "pending" }); i >= 0 {
			return fmt.Sprintf("change %s of %s is pending", all[i].ID, all[i].Path)
		}
		return ""
	})
	next := map[string]string{} // what the next newer change of a file found
	for _, c := range all {
		switch c.State {
		case "done":
		case "failed":
			continue
		default:
			t.Errorf("change %s of %s is %s", c.ID, c.Path, c.State)
			continue
		}
		want, ok := next[c.Path]
		if !ok {
			want = digest(t, c.Path)
		}
		if c.After != want {
			t.Errorf("change %s of %s made %.8q, which became %.8q", c.ID, c.Path, c.After, want)
		}
		next[c.Path] = c.Before
	}
}

// digest is the hash of a file, "" if there is none.
func digest(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
