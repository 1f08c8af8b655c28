package console

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

var (
	planField = regexp.MustCompile(`name="plan" value="(\w+)"`)
	idField   = regexp.MustCompile(`type="hidden" name="id" value="(\w+)"`)
)

// changes makes three calls that change files, and returns the address of the rewind to before the first.
func (s *served) changes(t *testing.T) (rewind string) {
	t.Helper()
	s.call("Read", `{"file_path":"a.txt"}`)
	for _, call := range [][2]string{
		{"Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`}, {"Write", `{"file_path":"new/b.txt","content":"new\n"}`},
		{"Edit", `{"file_path":"a.txt","old_string":"two","new_string":"three"}`},
	} {
		if r := s.call(call[0], call[1]); r.IsError {
			t.Fatal(r.Text)
		}
	}
	calls, err := s.operator.Calls(builtin.ChangeFilter{})
	if err != nil || len(calls) != 3 {
		t.Fatalf("there are %d calls, %v", len(calls), err)
	}
	return "/history/" + calls[2].ID + "/rewind"
}

// holds reports files that do not hold what they should; "" stands for no file.
func (s *served) holds(t *testing.T, want map[string]string) {
	t.Helper()
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(s.root, name))
		if string(got) != content || os.IsNotExist(err) != (content == "") {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, content)
		}
	}
}

func (s *served) planOf(t *testing.T, rewind string) (plan, page string) {
	t.Helper()
	_, page = s.get(t, rewind)
	m := planField.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the preview has no plan:\n%s", page)
	}
	return m[1], page
}

func TestRewindOnThePage(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": "one\n"})
	rewind := s.changes(t)
	if _, page := s.get(t, "/history"); !strings.Contains(page,
		"30 days, 64 MiB a file; of commands the first 200000 files of a workspace") {
		t.Errorf("the history does not say its bounds:\n%s", page)
	}
	plan, page := s.planOf(t, rewind)
	for _, want := range []string{"-three\n", "+one\n", "-new\n", "Rewind 2 files"} {
		if !strings.Contains(page, want) {
			t.Errorf("the preview lacks %q:\n%s", want, page)
		}
	}
	left := map[string]string{"a.txt": "three\n", "new/b.txt": "new\n"}
	s.holds(t, left)
	if status, page := s.sent(t, rewind, url.Values{}); status != http.StatusConflict ||
		!strings.Contains(page, "Nothing was done") {
		t.Errorf("a rewind without a preview: %d\n%s", status, page)
	}
	if status, _ := s.post(t, rewind, url.Values{"plan": {plan}}); status != http.StatusForbidden {
		t.Errorf("a rewind without the token of the session: %d", status)
	}
	s.holds(t, left)
	status, page := s.sent(t, rewind, url.Values{"plan": {plan}})
	if status != http.StatusOK || !strings.Contains(page, "Rewound") {
		t.Fatalf("the rewind: %d\n%s", status, page)
	}
	s.holds(t, map[string]string{"a.txt": "one\n", "new/b.txt": ""})
	undo := url.Values{}
	for _, id := range idField.FindAllStringSubmatch(page, -1) {
		undo.Add("id", id[1])
	}
	if status, page := s.sent(t, "/history/undo", undo); status != http.StatusOK {
		t.Errorf("undoing the rewind: %d\n%s", status, page)
	}
	s.holds(t, left)
}

// TestRewindOfConflicts leaves what another program changed, shows what force would write, and does not act on a preview that is old.
func TestRewindOfConflicts(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": "one\n"})
	rewind := s.changes(t)
	old, _ := s.planOf(t, rewind)
	if err := os.WriteFile(filepath.Join(s.root, "a.txt"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, page := s.sent(t, rewind, url.Values{"plan": {old}}); status != http.StatusConflict ||
		!strings.Contains(page, "has changed since you looked") {
		t.Errorf("a rewind by an old preview: %d\n%s", status, page)
	}
	s.holds(t, map[string]string{"a.txt": "mine\n", "new/b.txt": "new\n"})
	plan, page := s.planOf(t, rewind)
	for _, want := range []string{"outside the history", "What force would change as well", "-mine\n", "Rewind 1 file",
		"Rewind all the same"} {
		if !strings.Contains(page, want) {
			t.Errorf("the preview lacks %q:\n%s", want, page)
		}
	}
	if status, page := s.sent(t, rewind, url.Values{"plan": {plan}}); status != http.StatusConflict ||
		!strings.Contains(page, "1 left as they are") {
		t.Errorf("a rewind with a conflict: %d\n%s", status, page)
	}
	s.holds(t, map[string]string{"a.txt": "mine\n", "new/b.txt": ""})
	plan, _ = s.planOf(t, rewind)
	if status, page := s.sent(t, rewind, url.Values{"plan": {plan}, "force": {"1"}}); status != http.StatusOK {
		t.Errorf("a forced rewind: %d\n%s", status, page)
	}
	s.holds(t, map[string]string{"a.txt": "one\n", "new/b.txt": ""})
}

// TestRewindWhileTasksRun is refused and names them, and a command is one row of the timeline.
func TestRewindWhileTasksRun(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	s := serve(t, map[string]string{"a.txt": "one\n"}, func(c *mcpserver.Config) { c.Allow = []string{"Bash"} })
	rewind := s.changes(t)
	if r := s.call("Bash", `{"command":"echo x > c.txt; echo y > d.txt"}`); r.IsError {
		t.Skip(r.Text)
	}
	s.call("Bash", `{"command":"until [ -e go ]; do sleep 0.05; done","run_in_background":true}`)
	plan, page := s.planOf(t, rewind)
	for _, want := range []string{"still runs", "until [ -e go ]", "Rewind all the same"} {
		if !strings.Contains(page, want) {
			t.Errorf("the preview lacks %q:\n%s", want, page)
		}
	}
	if status, page := s.sent(t, rewind, url.Values{"plan": {plan}}); status != http.StatusConflict ||
		!strings.Contains(page, "still runs") {
		t.Errorf("a rewind while a command runs: %d\n%s", status, page)
	}
	s.holds(t, map[string]string{"a.txt": "three\n"})
	if _, page := s.get(t, "/history"); strings.Count(page, `class="item change"`) != 4 ||
		!strings.Contains(page, "2 created") || !strings.Contains(page, "c.txt, d.txt") {
		t.Errorf("the timeline:\n%s", page)
	}
	if err := os.WriteFile(filepath.Join(s.root, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRewindToNothing(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/history/zzzzzzzzzzzz/rewind", "/history/zzzzzzzzzzzz"} {
		if status, _ := s.get(t, path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}
