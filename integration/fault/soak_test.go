//go:build slow && linux

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A soaked file is one that many clients add lines to, each before the last line. Its lines are numbered nowhere: what makes one whole
// is that it begins with BEGIN, ends with END, and has whole marks between.
type soaked struct {
	path  string
	acked atomic.Int64 // how many marks were acknowledged
}

var mark = regexp.MustCompile(`^mark (\d+-\d+) [a-z]{40} (\d+-\d+)$`)

// newMark is a line that tells whether it is whole.
func newMark(client, n int) (id, line string) {
	id = fmt.Sprintf("%d-%d", client, n)
	return id, fmt.Sprintf("mark %s %s %s", id, strings.Repeat(string(rune('a'+n%26)), 40), id)
}

// marks returns the marks of a content in order, or says how it is torn.
func marks(content string) ([]string, error) {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if len(lines) < 2 || lines[0] != "BEGIN" || lines[len(lines)-1] != "END" || !strings.HasSuffix(content, "\n") {
		return nil, fmt.Errorf("torn: %d bytes, from %.60q to %.60q", len(content), lines[0], lines[len(lines)-1])
	}
	var all []string
	for _, line := range lines[1 : len(lines)-1] {
		m := mark.FindStringSubmatch(line)
		if m == nil || m[1] != m[2] {
			return nil, fmt.Errorf("torn: the line %.100q", line)
		}
		all = append(all, m[1])
	}
	return all, nil
}

// An edit is one that was acknowledged.
type edit struct {
	id         string
	file       *soaked
	begun, end time.Time
}

// A soaker is one client: a conversation over a connection it may share.
type soaker struct {
	n     int
	conn  *client.Conn
	meta  map[string]any
	files []*soaked

	calls, refused int
	edits          []edit
	lastSeen       map[*soaked]int // how many marks it saw last
}

// A crew is hosts that share nothing but the root, and clients of them.
type crew struct {
	files   []*soaked
	hosts   []*session // the last serves HTTP
	clients []*soaker
}

// add adds a client that works on two of the files.
func (c *crew) add(conn *client.Conn, meta map[string]any) {
	n := len(c.clients)
	mine := []*soaked{c.files[n%len(c.files)], c.files[(n/2)%len(c.files)]}
	c.clients = append(c.clients, &soaker{n: n, conn: conn, meta: meta, files: mine, lastSeen: map[*soaked]int{}})
}

// newCrew starts hosts on a root, with 32 clients in both eras: conversations of a connection, sessions, and conversations over HTTP.
func newCrew(t *testing.T, g *ground) *crew {
	t.Helper()
	const stdioHosts, conversations, webClients = 6, 4, 8
	eras := []client.Era{client.Modern, client.Legacy}
	c := &crew{}
	for i := range 8 {
		c.files = append(c.files, &soaked{path: g.Put(fmt.Sprintf("%c/f%d.txt", 'a'+i%3, i), "BEGIN\nEND\n")})
	}
	for i := range stdioHosts {
		own := *g
		own.State = host.TempDir(t)
		s := own.start(host.Setting{Transport: "stdio", Era: eras[i%2]})
		c.hosts = append(c.hosts, s)
		for j := range conversations {
			c.add(s.Conn, host.Conversation(fmt.Sprint("soak ", j)))
		}
	}
	web := g.start(host.HTTPModern)
	c.hosts = append(c.hosts, web)
	for i := range webClients {
		conn, err := client.HTTP(web.Ctx, eras[i%2], web.URL, web.Token)
		host.Must(t, err)
		meta := host.Conversation(fmt.Sprint("web ", i))
		if i%2 == 1 {
			meta = nil // its session tells it apart
		}
		c.add(conn, meta)
	}
	return c
}

// TestSoak lets many clients of several hosts add marks to a few files. At the end every acknowledged mark is there once, in an order
// that could have been; no one ever saw half a file, or less than was acknowledged before; and no host has grown.
func TestSoak(t *testing.T) {
	g := newGround(t)
	c := newCrew(t, g)
	web := c.hosts[len(c.hosts)-1]
	soak(t, web.Ctx, c.clients, len(c.clients)) // warm
	table := &leakTable{}
	for i, h := range c.hosts {
		h.MustCall("Bash", host.Args{"command": "true"}) // the first command starts the sandbox and shells, and chance may have made none
		table.rows = append(table.rows, leakRow{name: fmt.Sprint(i), start: measure(t, h.Cmd.Process.Pid, g.WS)})
	}
	start := time.Now()
	soak(t, web.Ctx, c.clients, samples.Rounds(1500))
	took := time.Since(start)
	checkMarks(t, c.files, c.clients)
	for i, h := range c.hosts {
		row := &table.rows[i]
		host.Eventually(t, func() string {
			row.end = measure(t, h.Cmd.Process.Pid, g.WS)
			if more := row.end.exceeds(row.start, growth); more != "" {
				return fmt.Sprintf("host %d holds %s", i, more)
			}
			return ""
		})
	}
	table.rows[len(c.hosts)-1].name += " (http)"
	done, refused, edits := 0, 0, 0
	for _, s := range c.clients {
		done, refused, edits = done+s.calls, refused+s.refused, edits+len(s.edits)
	}
	t.Logf("%d calls of %d clients in %v, %d edits acknowledged, %d refused because the file had changed\n%s",
		done, len(c.clients), took.Round(time.Millisecond), edits, refused, table)
	checkGoroutines(t, g, c.hosts[0])
	for _, h := range c.hosts[1:] {
		h.End()
	}
	g.Tidy()
}

// checkGoroutines ends a soaked host and holds the number of its goroutines against that of a new one.
func checkGoroutines(t *testing.T, g *ground, soaked *session) {
	t.Helper()
	other := *g
	other.State = host.TempDir(t)
	fresh := other.start(host.StdioModern)
	g.Put("fresh.txt", "number 0\n")
	for tool, a := range map[string]host.Args{
		"Read": {"file_path": "fresh.txt"}, "Grep": {"pattern": "number"}, "Glob": {"pattern": "*.txt"}, "Bash": {"command": "true"},
	} {
		fresh.MustCall(tool, a)
	}
	was, now := fresh.goroutines(), soaked.goroutines()
	t.Logf("goroutines: %d in a new host, %d in a soaked one, which may have %d more", was, now, moreGoroutines)
	if now > was+moreGoroutines {
		t.Errorf("%d goroutines after the soak, %d in a new host:\n%.6000s", now, was, soaked.Stderr)
	}
}

// soak lets the clients make so many calls between them, while somebody looks at the files from outside.
func soak(t *testing.T, ctx context.Context, soakers []*soaker, calls int) {
	var left atomic.Int64
	left.Store(int64(calls))
	done := make(chan struct{})
	var looking, soaking sync.WaitGroup
	looking.Go(func() { lookOn(t, soakers, done) })
	for _, s := range soakers {
		soaking.Go(func() {
			for left.Add(-1) >= 0 && !t.Failed() {
				if err := s.step(ctx); err != nil {
					t.Errorf("client %d: %v", s.n, err)
					return
				}
			}
		})
	}
	soaking.Wait()
	close(done)
	looking.Wait()
}

// lookOn reads the files, past all hosts, until done: no mark that was seen may be lost or move.
func lookOn(t *testing.T, soakers []*soaker, done <-chan struct{}) {
	seen := map[*soaked][]string{}
	for {
		for _, s := range soakers {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond): // a look at what happens, not a load
			}
			f := s.files[0]
			raw, err := os.ReadFile(f.path)
			if err != nil {
				t.Error(err)
				return
			}
			now, err := marks(string(raw))
			if err != nil {
				t.Errorf("%s: %v", f.path, err)
				return
			}
			if was := seen[f]; len(now) < len(was) || !slices.Equal(now[:len(was)], was) {
				t.Errorf("%s lost marks: %d after %d", f.path, len(now), len(was))
			}
			seen[f] = now
		}
	}
}

// step makes one call: mostly an edit, else something that looks.
func (s *soaker) step(ctx context.Context) error {
	f := s.files[rand.IntN(len(s.files))]
	s.calls++
	switch n := rand.IntN(100); {
	case n < 60:
		return s.edit(ctx, f)
	case n < 80:
		return s.read(ctx, f)
	case n < 90:
		return s.look(ctx, "Grep", host.Args{"pattern": "^END$", "path": f.path, "output_mode": "count"})
	case n < 95:
		return s.look(ctx, "Glob", host.Args{"pattern": "**/*.txt"})
	}
	return s.look(ctx, "Bash", host.Args{"command": "tail -n 1 " + f.path})
}

func (s *soaker) call(ctx context.Context, tool string, a host.Args) (*client.Result, error) {
	p, err := s.conn.Start(ctx, tool, a.String(), s.meta)
	if err != nil {
		return nil, err
	}
	return p.Result(ctx)
}

// look makes a call that has to work.
func (s *soaker) look(ctx context.Context, tool string, a host.Args) error {
	r, err := s.call(ctx, tool, a)
	if err == nil && r.IsError {
		err = fmt.Errorf("%s %s: %s", tool, a, r.Text())
	}
	return err
}

// read reads a file: it is whole, and has all that was acknowledged before.
func (s *soaker) read(ctx context.Context, f *soaked) error {
	acked := int(f.acked.Load())
	content := ""
	for offset := 1; ; {
		r, err := s.call(ctx, "Read", host.Args{"file_path": f.path, "offset": offset})
		if err != nil {
			return err
		}
		if r.IsError {
			return fmt.Errorf("Read of %s: %s", f.path, r.Text())
		}
		lines := 0
		for line := range strings.Lines(r.Text()) {
			if _, text, ok := strings.Cut(line, "→"); ok {
				content += strings.TrimSuffix(text, "\n") + "\n"
				lines++
			}
		}
		if offset += lines; lines == 0 || strings.HasSuffix(content, "\nEND\n") {
			break
		}
	}
	now, err := marks(content)
	if err != nil {
		return fmt.Errorf("Read of %s: %w", f.path, err)
	}
	if len(now) < max(acked, s.lastSeen[f]) {
		return fmt.Errorf("Read of %s shows %d marks; %d were acknowledged before, %d seen", f.path, len(now), acked,
			s.lastSeen[f])
	}
	s.lastSeen[f] = len(now)
	return nil
}

// edit adds a mark. Others add theirs meanwhile, so that it can be refused, with the change that counts as read.
func (s *soaker) edit(ctx context.Context, f *soaked) error {
	id, line := newMark(s.n, s.calls)
	begun := time.Now()
	r, err := s.call(ctx, "Edit", host.Args{"file_path": f.path, "old_string": "END\n", "new_string": line + "\nEND\n"})
	switch {
	case err != nil:
		return err
	case !r.IsError:
		f.acked.Add(1)
		s.edits = append(s.edits, edit{id, f, begun, time.Now()})
		return nil
	case strings.Contains(r.Text(), "has not been read"):
		return s.read(ctx, f)
	case strings.Contains(r.Text(), "has changed on disk"):
		s.refused++
		return nil
	}
	return fmt.Errorf("Edit of %s: %s", f.path, r.Text())
}

// checkMarks holds that every acknowledged mark is there once and no other is, and that no mark stands before one whose edit had ended
// when its own began.
func checkMarks(t *testing.T, files []*soaked, soakers []*soaker) {
	t.Helper()
	byFile := map[*soaked]map[string]edit{}
	for _, s := range soakers {
		for _, e := range s.edits {
			if byFile[e.file] == nil {
				byFile[e.file] = map[string]edit{}
			}
			byFile[e.file][e.id] = e
		}
	}
	for _, f := range files {
		there, err := marks(host.Get(t, f.path))
		if err != nil {
			t.Errorf("%s: %v", f.path, err)
		}
		acked := byFile[f]
		if len(there) != len(acked) {
			t.Errorf("%s has %d marks, %d were acknowledged", f.path, len(there), len(acked))
		}
		var latest time.Time // when the last begun of the edits so far began
		for _, id := range there {
			e, ok := acked[id]
			if !ok {
				t.Errorf("%s has mark %s twice, or it was not acknowledged", f.path, id)
			}
			if e.end.Before(latest) {
				t.Errorf("%s: mark %s stands behind one that began only when it was acknowledged", f.path, id)
			}
			if e.begun.After(latest) {
				latest = e.begun
			}
			delete(acked, id)
		}
		for id := range acked {
			t.Errorf("%s lacks mark %s, which was acknowledged", f.path, id)
		}
	}
}
