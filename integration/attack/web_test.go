//go:build unix

package attack

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// attackWeb fetches the server that a background task of another runs, under every name of this machine.
func (s *shop) attackWeb(t *testing.T, alice, bob *client.Conn) {
	const canary = "CANARY-WEB-5521"
	_, r := s.call(alice, "Bash", object{"command": "mkdir -p site && echo " + canary +
		" > site/index.html && exec python3 -u -m http.server 4177 --directory site", "run_in_background": true}, nil)
	id := taskID.FindString(r.Text())
	if id == "" {
		t.Fatalf("no task: %s", r.Text())
	}
	defer s.call(alice, "TaskStop", object{"task_id": id}, nil)
	s.call(alice, "TaskOutput", object{"task_id": id, "until": "Serving"}, nil)
	if raw, _ := s.call(alice, "WebFetch", object{"url": "http://localhost:4177/"},
		nil); !strings.Contains(raw, canary) {
		t.Errorf("the own server is not fetched: %s", raw)
	}
	for _, url := range []string{"http://localhost:4177/", "http://127.0.0.1:4177/", "http://[::1]:4177/",
		"localhost:4177", "http://localhost.:4177/", "http://0.0.0.0:4177/", "http://LOCALHOST:4177/#x"} {
		if raw, r := s.call(bob, "WebFetch", object{"url": url}, nil); !r.IsError || strings.Contains(raw, canary) {
			t.Errorf("%s of another is fetched: %s", url, raw)
		}
	}
}
