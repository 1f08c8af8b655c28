package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// openStored opens a gateway with one server of a project, which is not started.
func openStored(t *testing.T, dir, file string) (*Gateway, *server) {
	t.Helper()
	e := &Entry{Name: "s", Type: typeStdio, Command: "none", Trust: Project, File: file}
	g := Open(Config{Servers: func() ([]*Entry, []string) { return []*Entry{e}, nil }, Dir: dir,
		Changed: func(*Gateway, bool) {}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { g.Close() })
	s, err := g.server("s")
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

// offers notes that the server offers these tools.
func (s *server) offers(tools ...string) {
	var o offer
	for _, text := range tools {
		o.Tools = append(o.Tools, json.RawMessage(text))
	}
	s.store.learned(s.Entry, o, false)
}

// TestOtherCallerFirst: what the server lists to the local user is accepted at first sight, also if another caller has
// used the server before. What it lists later is not.
func TestOtherCallerFirst(t *testing.T) {
	e := &Entry{Name: "s", Type: typeStdio, Command: "none", Trust: User}
	s := openStore("", e, slog.New(slog.DiscardHandler))
	skill := func(name string) json.RawMessage {
		uri := "skill://" + name + "/SKILL.md"
		return json.RawMessage(fmt.Sprintf(`{"uri":%q,"frontmatter":{},"resources":[{"uri":%q,"digest":"sha256:%064d"}]}`, uri, uri, 0))
	}
	s.learned(e, offer{Readable: true}, false)
	s.learned(e, offer{Readable: true, Own: &listing{Skills: []json.RawMessage{skill("a")}}}, false)
	s.learned(e, offer{Readable: true, Own: &listing{Skills: []json.RawMessage{skill("a"), skill("b")}}}, false)
	for id, want := range map[string]bool{"skill skill://a/SKILL.md": true, "skill skill://b/SKILL.md": false} {
		if _, ok := s.accepted(id); ok != want {
			t.Errorf("%s: accepted %t", id, ok)
		}
	}
}

// TestAcceptReviewed: what is accepted is what was shown, and of one repository alone.
func TestAcceptReviewed(t *testing.T) {
	dir := t.TempDir()
	g, s := openStored(t, dir, "/one/.mcp.json")
	review := func() []Change {
		changes, err := g.Review("s")
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	s.offers(`{"name":"a","description":"1"}`)
	first := review()
	if err := g.Shown("s", first); err != nil {
		t.Fatal(err)
	}
	s.offers(`{"name":"a","description":"2"}`, `{"name":"b"}`)
	for _, changes := range [][]Change{first, review()} {
		if err := g.Accept("s", changes); err == nil || !strings.Contains(err.Error(), "toolhost mcp review s") ||
			len(review()) != 2 {
			t.Errorf("what was not reviewed is accepted: %v, left %v", err, review())
		}
	}
	if err := g.Shown("s", review()); err != nil {
		t.Fatal(err)
	}
	s.offers(`{"name":"a","description":"2"}`) // less than was shown
	if err := g.Accept("s", review()); err != nil || len(review()) != 0 {
		t.Errorf("accepted: %v, left %v", err, review())
	}
	if again, _ := openStored(t, dir, "/one/.mcp.json"); len(must(again.Review("s"))) != 0 {
		t.Error("another host does not know what was accepted")
	}
	other, s := openStored(t, dir, "/two/.mcp.json")
	s.offers(`{"name":"a","description":"2"}`)
	if len(must(other.Review("s"))) != 1 {
		t.Error("what was accepted of one repository counts in another")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestDamagedRecord damages the record of a server of the user's own entry: a definition that was withheld is not accepted for
// want of what was accepted before.
func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	e := &Entry{Name: "s", Trust: User}
	tool := func(text string) offer {
		return offer{Tools: []json.RawMessage{json.RawMessage(`{"name":"t","description":"` + text +
			`","inputSchema":{"type":"object"}}`)}}
	}
	s := openStore(dir, e, slog.New(slog.DiscardHandler))
	s.learned(e, tool("honest"), true)
	s.learned(e, tool("changed"), false)
	whole, err := os.ReadFile(s.file)
	if err != nil || len(s.get().Withheld) != 1 {
		t.Fatalf("withheld are %v, %v", s.get().Withheld, err)
	}
	damage := func(what string, text []byte) {
		t.Helper()
		if err := os.WriteFile(s.file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		for range 2 { // the second host finds no damage any more
			again := openStore(dir, e, slog.New(slog.NewTextHandler(&log, nil)))
			again.learned(e, tool("changed"), !again.seen())
			if len(again.get().Withheld) != 1 {
				t.Errorf("%s: withheld are %v", what, again.get().Withheld)
			}
		}
		if aside, err := os.ReadFile(s.file + ".damaged"); string(aside) != string(text) ||
			!strings.Contains(log.String(), s.file+".damaged") {
			if log.Len() > 0 || !json.Valid(text) {
				t.Errorf("%s: set aside is %.20q, %v; the log: %s", what, aside, err, log.String())
			}
		}
	}
	for i := 0; i < len(whole); i += 13 {
		damage(fmt.Sprint("cut at ", i), whole[:i])
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		damage(fmt.Sprint("flipped at ", i), flipped)
	}
}
