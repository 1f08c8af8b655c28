package gateway

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// openStored opens a gateway with one server of a project, which is not started.
func openStored(t *testing.T, dir, file string) (*Gateway, *server) {
	t.Helper()
	e := &Entry{Name: "s", Type: typeStdio, Command: "none", Trust: Project, File: file}
	g := Open(Config{Servers: func() ([]*Entry, []string) { return []*Entry{e}, nil }, Dir: dir, Changed: func(*Gateway, bool) {}, Log: slog.New(slog.DiscardHandler)})
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
		if err := g.Accept("s", changes); err == nil || !strings.Contains(err.Error(), "toolhost mcp review s") || len(review()) != 2 {
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
