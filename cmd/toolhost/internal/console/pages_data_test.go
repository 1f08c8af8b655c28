package console

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

func TestUndoOnThePage(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": "one\n"})
	s.call("Read", `{"file_path":"a.txt"}`)
	if r := s.call("Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`); r.IsError {
		t.Fatal(r.Text)
	}
	changes, err := s.operator.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) != 1 {
		t.Fatalf("there are %d changes, %v", len(changes), err)
	}
	path := filepath.Join(s.root, "a.txt")
	if err := os.WriteFile(path, []byte("three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	undo := "/history/" + changes[0].ID + "/undo"
	status, page := s.sent(t, undo, url.Values{})
	if status != http.StatusConflict || !strings.Contains(page, "all the same") || strings.Contains(page, "--force") {
		t.Errorf("undoing below a later change: %d\n%s", status, page)
	}
	if status, page = s.sent(t, undo, url.Values{"force": {"1"}}); status != http.StatusOK ||
		!strings.Contains(page, "Undone") {
		t.Errorf("undoing all the same: %d\n%s", status, page)
	}
	if got, err := os.ReadFile(path); string(got) != "one\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if status, page := s.sent(t, undo, url.Values{}); status != http.StatusConflict ||
		!strings.Contains(page, "has been undone") {
		t.Errorf("undoing twice: %d\n%s", status, page)
	}
	if status, _ := s.sent(t, "/history/zzzzzzzzzzzz/undo", url.Values{}); status != http.StatusNotFound {
		t.Errorf("undoing nothing: %d", status)
	}
}

// TestHistoryIsThisHosts leaves out what other hosts with the same state directory did elsewhere.
func TestHistoryIsThisHosts(t *testing.T) {
	s := serve(t, nil)
	elsewhere := s.cfg
	elsewhere.Roots, elsewhere.Observers, elsewhere.Asker = []string{t.TempDir()}, nil, nil
	other, err := mcpserver.Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	r := other.Call(context.Background(), other.AdmitNamed(""),
		mcpserver.Request{Tool: "Write", Args: []byte(`{"file_path":"theirs.txt","content":"x"}`)})
	if err := other.Close(); err != nil || r.IsError {
		t.Fatal(err, r.Text)
	}
	s.call("Write", `{"file_path":"ours.txt","content":"x"}`)
	if _, page := s.get(t, "/history"); strings.Contains(page, "theirs.txt") || !strings.Contains(page, "ours.txt") {
		t.Errorf("the history shows:\n%s", page)
	}
}

func TestUndoOfSeveral(t *testing.T) {
	s := serve(t, nil)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		if r := s.call("Write", `{"file_path":"`+name+`","content":"x"}`); r.IsError {
			t.Fatal(r.Text)
		}
	}
	if err := os.WriteFile(filepath.Join(s.root, "a.txt"), []byte("changed since"), 0o644); err != nil {
		t.Fatal(err)
	}
	changes, err := s.operator.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) != 3 {
		t.Fatalf("there are %d changes, %v", len(changes), err)
	}
	status, page := s.sent(t, "/history/undo", url.Values{"id": {changes[1].ID, changes[2].ID}})
	if status != http.StatusConflict || !strings.Contains(page, "b.txt.") ||
		!strings.Contains(page, "a.txt was left as it is") {
		t.Errorf("undoing two, one of which was changed since: %d\n%s", status, page)
	}
	for name, there := range map[string]bool{"a.txt": true, "b.txt": false, "c.txt": true} {
		if _, err := os.Stat(filepath.Join(s.root, name)); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", name, err == nil, there)
		}
	}
	if status, page := s.sent(t, "/history/undo", url.Values{}); status != http.StatusConflict ||
		!strings.Contains(page, "Choose the changes") {
		t.Errorf("undoing none: %d\n%s", status, page)
	}
}

func TestExplainOnThePage(t *testing.T) {
	s := serve(t, map[string]string{".claude/settings.json": `{"permissions":{"ask":["Bash(git push:*)"]}}`})
	tests := []struct{ name, tool, input, want string }{
		{"a command as it is", "Bash", "git push origin", "Bash(git push:*)"},
		{"JSON", "Bash", `{"command":"git push"}`, "Bash(git push:*)"},
		{"a path as it is", "Read", "/etc/shadow", "boundary"},
		{"wrong JSON", "Bash", `{"comand":"x"}`, "comand"},
		{"no such tool", "Nothing", "x", "no such tool"},
	}
	for _, tt := range tests {
		if _, page := s.sent(t, "/rules", url.Values{"tool": {tt.tool}, "input": {tt.input}}); !strings.Contains(page,
			tt.want) {
			t.Errorf("%s: the page does not hold %q:\n%s", tt.name, tt.want, page)
		}
	}
}
