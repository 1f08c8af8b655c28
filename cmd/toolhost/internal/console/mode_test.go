package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestModeSwitch puts a conversation into plan mode and back on its page.
func TestModeSwitch(t *testing.T) {
	testenv.NeedsNamespaces(t)
	s := serve(t, nil)
	writes := func() bool { return !s.call("Write", `{"file_path":"new.txt","content":"x"}`).IsError }
	if !writes() {
		t.Fatal("nothing can be written")
	}
	_, page := s.get(t, "/")
	session := regexp.MustCompile(`/sessions/\w+`).FindString(page)
	for _, mode := range []string{"plan", "default"} {
		status, page := s.sent(t, session+"/mode", url.Values{"mode": {mode}})
		if status != http.StatusOK || strings.Contains(page, "Switch plan mode off") != (mode == "plan") {
			t.Errorf("mode %s: %d\n%s", mode, status, page)
		}
		if r := s.call("Write", `{"file_path":"`+mode+`.txt","content":"x"}`); r.IsError != (mode == "plan") {
			t.Errorf("mode %s: %s", mode, r.Text)
		}
	}
	for path, form := range map[string]url.Values{session: {"mode": {"bypassPermissions"}},
		"/sessions/none": {"mode": {"plan"}}} {
		if status, _ := s.sent(t, path+"/mode", form); status == http.StatusOK {
			t.Errorf("%s %v is accepted", path, form)
		}
	}
	if status, _ := s.post(t, session+"/mode", url.Values{"mode": {"plan"}}); status != http.StatusForbidden {
		t.Errorf("without the token of the session: %d", status)
	}
}
