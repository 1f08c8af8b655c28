//go:build slow

package scripts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// replicas are servers of one directory, of which one after another is killed and replaced.
type replicas struct {
	*village
	mu  sync.Mutex
	all []*host.Served
}

// one returns any of them.
func (r *replicas) one() *host.Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[rand.IntN(len(r.all))]
}

// replace kills one without warning, and starts another in its place.
func (r *replicas) replace(i int) {
	fresh := r.front()
	r.mu.Lock()
	old := r.all[i]
	r.all[i] = fresh
	r.mu.Unlock()
	host.Must(r.T, old.Cmd.Process.Kill())
	<-old.Gone
}

// TestWorkspacesReplicas kills servers under load. Each call that was answered has run once, no call has run twice, and a
// call whose connection broke has run once or not at all.
func TestWorkspacesReplicas(t *testing.T) {
	const callers, calls = 4, 60
	var names []string
	for i := range callers {
		names = append(names, fmt.Sprint("w", i))
	}
	r := &replicas{village: newVillage(t, names...)}
	for range 3 {
		r.all = append(r.all, r.front())
	}
	var answered, broken sync.Map
	var load sync.WaitGroup
	for _, name := range names {
		for range 2 {
			load.Go(func() {
				for range calls / 2 {
					id := fmt.Sprintf("%s/call-%d", name, rand.Uint64())
					reply, err := r.at(r.one(), name, name).Try(context.Background(), "Bash",
						host.Args{"command": "echo x >> " + filepath.Base(id)}, nil)
					switch {
					case err != nil:
						broken.Store(id, true)
					case reply.Status == http.StatusOK && !reply.Result.IsError && reply.Error == nil:
						answered.Store(id, true)
					default:
						t.Errorf("%s: %+v", id, reply)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { load.Wait(); close(done) }()
	killed := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			r.replace(killed % len(r.all))
			killed++
		}
	}
	ran := func(id string) int {
		raw, err := os.ReadFile(r.Path(id))
		if err != nil {
			return 0
		}
		return strings.Count(string(raw), "x\n")
	}
	whole, cut := 0, 0
	answered.Range(func(id, _ any) bool {
		whole++
		if n := ran(id.(string)); n != 1 {
			t.Errorf("%s was answered and ran %d times", id, n)
		}
		return true
	})
	broken.Range(func(id, _ any) bool {
		cut++
		if n := ran(id.(string)); n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
		return true
	})
	if killed < 3 || whole == 0 {
		t.Errorf("%d servers were killed, %d calls answered", killed, whole)
	}
	t.Logf("%d servers killed: %d calls answered, %d cut", killed, whole, cut)
}

// TestWorkspacesEnd: a server that ends answers the calls that run, a workspace that is idle has no host, and a token that
// is revoked ends its background tasks.
func TestWorkspacesEnd(t *testing.T) {
	v := newVillage(t, "alice", "bob")
	s := v.front()
	alice, bob := v.at(s, "alice", "alice"), v.at(s, "bob", "bob")
	begun := func(name string) {
		t.Helper()
		host.Eventually(t, func() string {
			if _, err := os.Stat(v.Path(name + "/begun")); err != nil {
				return "the command has not begun"
			}
			return ""
		})
	}
	tag := host.NewTag()
	r := bob.MustCall("Bash", host.Args{"command": "export TAG=" + tag + "; touch begun; sleep 1000", "run_in_background": true}, nil)
	if r.Result.IsError {
		t.Fatal(r.Result.Text())
	}
	begun("bob")
	_, err := v.Run("token", "revoke", "bob")
	host.Must(t, err)
	host.Survivors(t, tag)
	answer := make(chan string, 1)
	go func() {
		r, err := alice.Try(context.Background(), "Bash",
			host.Args{"command": "touch begun; until [ -e go ]; do sleep 0.05; done; echo done"}, nil)
		answer <- fmt.Sprint(r.Result.Text(), err)
	}()
	begun("alice")
	host.Must(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	host.Eventually(t, func() string {
		if r, err := alice.Try(context.Background(), "Read", host.Args{"file_path": "note"},
			host.Conversation("other")); err == nil && r.Status != http.StatusServiceUnavailable {
			return fmt.Sprintf("a server that ends takes a call: %d", r.Status)
		}
		return ""
	})
	v.Put("alice/go", "")
	if got := <-answer; !strings.HasPrefix(got, "done\n") || !strings.HasSuffix(got, "<nil>") {
		t.Errorf("the call that ran: %s", got)
	}
	host.Must(t, <-s.Gone)
	host.Eventually(t, func() string {
		if pids := v.hosts(); len(pids) > 0 {
			return fmt.Sprintf("hosts %v of idle workspaces run", pids)
		}
		return ""
	})
}
