//go:build slow

package console

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/mcpserver"
)

// TestLeavingEndsWhatLasts leaves the console while requests wait for what is to come: what comes then is not theirs.
func TestLeavingEndsWhatLasts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	s := serve(t, nil, func(c *mcpserver.Config) { c.Allow = []string{"Bash"} })
	s.call("Bash", `{"command":"until [ -e go ]; do sleep 0.01; done; echo secret","run_in_background":true}`)
	_, page := s.get(t, "/")
	address := regexp.MustCompile(`/tasks/\w+`).FindString(page)
	if address == "" {
		t.Fatalf("there is no task:\n%s", page)
	}
	events, err := s.web.Get(s.URL() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	type answer struct {
		status int
		body   string
	}
	output := make(chan answer, 1)
	waits := make(chan struct{})
	go func() {
		close(waits)
		status, body := s.get(t, address+"/output/0")
		output <- answer{status, body}
	}()
	<-waits
	if status, _ := s.sent(t, "/leave", url.Values{}); status != http.StatusOK {
		t.Fatalf("leaving: %d", status)
	}
	if err := os.WriteFile(filepath.Join(s.root, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := <-output; got.status != http.StatusUnauthorized || strings.Contains(got.body, "secret") {
		t.Errorf("who has left is told: %d %s", got.status, got.body)
	}
	if _, err := io.Copy(io.Discard, events.Body); err != nil {
		t.Errorf("the stream broke: %v", err)
	}
}
