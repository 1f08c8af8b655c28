package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeAPI is an API server with claims and sandboxes. A sandbox is ready at once.
type fakeAPI struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	version int
	created int
	refuse  string        // the reason why claims get no sandbox
	engine  time.Duration // after which a claim gets its sandbox
	changed chan struct{}

	beforeSuspend func() // is called once, before a sandbox is suspended
}

// newPool returns a pool of a fake API server.
func newPool(t *testing.T) (*fakeAPI, *Pool) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("kubectl is a script")
	}
	api := &fakeAPI{objects: map[string]map[string]any{}, changed: make(chan struct{})}
	web := httptest.NewServer(api)
	t.Cleanup(web.Close)
	t.Setenv("PATH", writeKubectl(t, fmt.Sprintf(`{"clusters":[{"cluster":{"server":%q}}],"users":[{"user":{"token":"t"}}]}`, web.URL)))
	t.Setenv("KUBECONFIG", "set")
	pool, err := ParsePool("sandbox://ns/pool")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return api, pool
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		a.watch(w, r)
		return
	}
	if strings.Contains(r.Header.Get("Content-Type"), "merge-patch") && a.beforeSuspend != nil {
		if f := a.beforeSuspend; strings.Contains(path.Dir(r.URL.Path), "sandboxes") {
			a.beforeSuspend = nil
			f()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	code, out := a.answer(r)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out)
}

// answer makes one change.
func (a *fakeAPI) answer(r *http.Request) (code int, out any) {
	var in map[string]any
	_ = json.NewDecoder(r.Body).Decode(&in) // there may be none
	status := func(code int) (int, any) { return code, map[string]any{"message": http.StatusText(code)} }
	at := r.URL.Path
	if r.Header.Get("Authorization") != "Bearer t" {
		return status(http.StatusUnauthorized)
	}
	switch object := a.objects[at]; {
	case strings.HasSuffix(at, "selfsubjectreviews"):
		return http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "alice"}}}
	case r.Method == http.MethodPost:
		at += "/" + in["metadata"].(map[string]any)["name"].(string)
		if a.objects[at] != nil {
			return status(http.StatusConflict)
		}
		a.created++
		a.put(at, in)
		if a.engine == 0 {
			a.assign(at)
		} else {
			time.AfterFunc(a.engine, func() { a.mu.Lock(); defer a.mu.Unlock(); a.assign(at) })
		}
		return http.StatusCreated, a.objects[at]
	case r.Method == http.MethodGet && r.URL.Query().Has("labelSelector"):
		items := []any{}
		for _, key := range slices.Sorted(maps.Keys(a.objects)) {
			if path.Dir(key) == at && selected(a.objects[key], r.URL.Query().Get("labelSelector")) {
				items = append(items, a.objects[key])
			}
		}
		return http.StatusOK, map[string]any{"metadata": map[string]any{}, "items": items}
	case object == nil:
		return status(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(a.objects, at)
		return http.StatusOK, map[string]any{}
	case r.Method == http.MethodPatch:
		m, _ := in["metadata"].(map[string]any)
		if v := m["resourceVersion"]; v != nil && v != object["metadata"].(map[string]any)["resourceVersion"] {
			return status(http.StatusConflict)
		}
		a.put(at, merge(object, in))
	}
	return http.StatusOK, a.objects[at]
}

// put stores an object. A change of its spec is another generation, for which it is ready.
func (a *fakeAPI) put(at string, object map[string]any) {
	a.version++
	m := object["metadata"].(map[string]any)
	m["resourceVersion"], m["generation"] = fmt.Sprint(a.version), a.version
	if strings.Contains(at, "/sandboxes/") {
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True",
			"observedGeneration": a.version}}}
	}
	a.objects[at] = object
	close(a.changed)
	a.changed = make(chan struct{})
}

// assign gives a claim a sandbox.
func (a *fakeAPI) assign(at string) {
	name := path.Base(at)
	if a.refuse != "" {
		condition := map[string]any{"type": "Ready", "status": "False", "reason": a.refuse, "message": "no"}
		a.objects[at]["status"] = map[string]any{"conditions": []any{condition}}
		return
	}
	a.put("/apis/agents.x-k8s.io/v1beta1/namespaces/ns/sandboxes/box-"+name, map[string]any{"metadata": map[string]any{
		"name": "box-" + name, "annotations": map[string]any{podAnnotation: "pod-" + name}}})
	a.objects[at]["status"] = map[string]any{"sandbox": map[string]any{"name": "box-" + name}}
}

// watch passes on the object that the query names.
func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	for sent := ""; ; {
		a.mu.Lock()
		raw, _ := json.Marshal(a.objects[r.URL.Path+"/"+name])
		changed := a.changed
		a.mu.Unlock()
		if string(raw) != "null" && string(raw) != sent {
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", raw)
			w.(http.Flusher).Flush()
			sent = string(raw)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// merge returns an object with a patch of RFC 7386 applied.
func merge(object, patch map[string]any) map[string]any {
	result := map[string]any{}
	maps.Copy(result, object)
	for key, value := range patch {
		if more, ok := value.(map[string]any); ok {
			old, _ := result[key].(map[string]any)
			value = merge(old, more)
		}
		result[key] = value
	}
	return result
}

// selected reports whether an object has the labels of a selector.
func selected(object map[string]any, selector string) bool {
	labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
	for pair := range strings.SplitSeq(selector, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if labels[key] != value {
			return false
		}
	}
	return true
}

// age makes the last use of every sandbox so long ago.
func (a *fakeAPI) age(by time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, object := range a.objects {
		if strings.Contains(at, "/sandboxes/") {
			used := map[string]any{usedAnnotation: time.Now().Add(-by).UTC().Format(time.RFC3339)}
			a.put(at, merge(object, map[string]any{"metadata": map[string]any{"annotations": used}}))
		}
	}
}

// TestClaim: any number of processes get the same claim, one for each principal and name, and nothing is created twice.
func TestClaim(t *testing.T) {
	api, pool := newPool(t)
	own, err := Parse("sandbox://ns/pool/x")
	if err != nil {
		t.Fatal(err)
	}
	claims := []*Claim{pool.Claim("alice", "x"), pool.Claim("alice", "x"), pool.Claim("alice", "x"),
		pool.Claim("alice", "y"), pool.Claim("bob", "x"), own.Sandbox}
	var wait sync.WaitGroup
	for _, c := range claims {
		wait.Go(func() {
			if err := c.prepare(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if claims[0].pod != claims[1].pod || claims[0].pod != claims[2].pod || claims[0].pod != "pod-"+claims[0].name {
		t.Errorf("the pods are %s, %s, %s", claims[0].pod, claims[1].pod, claims[2].pod)
	}
	if api.created != 4 || claims[5].Principal != "alice" || claims[5].name == claims[0].name {
		t.Errorf("%d claims were created; mine is %s of %s", api.created, claims[5].name, claims[5].Principal)
	}
	if names, err := pool.Workspaces(t.Context(), "alice"); err != nil ||
		!slices.Equal(slices.Sorted(slices.Values(names)), []string{"x", "y"}) {
		t.Errorf("the workspaces of alice are %q, %v", names, err)
	}
	if err := claims[0].Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := claims[0].Release(t.Context()); err != nil {
		t.Errorf("what is gone cannot be released: %v", err)
	}
	if names, err := pool.Workspaces(t.Context(), "alice"); err != nil || !slices.Equal(names, []string{"y"}) {
		t.Errorf("afterwards the workspaces of alice are %q, %v", names, err)
	}
}

// TestForeignClaim: a claim under the name of ours that is not ours is not used.
func TestForeignClaim(t *testing.T) {
	api, pool := newPool(t)
	mine, bobs := pool.Claim("alice", "x"), pool.Claim("bob", "x")
	bobs.name = mine.name
	if err := bobs.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := mine.prepare(t.Context())
	if _, final := errors.AsType[Refusal](err); !final || !strings.Contains(err.Error(), "somebody else") ||
		api.created != 1 {
		t.Errorf("%v", err)
	}
}

// TestNoSandbox: what waiting does not change is said at once.
func TestNoSandbox(t *testing.T) {
	api, pool := newPool(t)
	api.refuse = "WarmPoolNotFound"
	err := pool.Claim("alice", "x").prepare(t.Context())
	if _, final := errors.AsType[Refusal](err); !final || !strings.Contains(err.Error(), "get sandboxwarmpools") {
		t.Errorf("%v", err)
	}
}

// TestSuspendUnused: what nothing uses is suspended, what is used in that moment is not, and what is used again runs.
func TestSuspendUnused(t *testing.T) {
	api, pool := newPool(t)
	mode := func(c *Claim) any {
		return api.objects[pool.sandboxes()+"/"+c.sandbox]["spec"].(map[string]any)["operatingMode"]
	}
	c := pool.Claim("alice", "x")
	step := func(want string, suspended int, before func()) {
		t.Helper()
		if err := c.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		before()
		if n, err := pool.SuspendUnused(t.Context()); err != nil || n != suspended || mode(c) != want {
			t.Errorf("%d suspended, %v; it is %v", n, err, mode(c))
		}
	}
	step("Running", 0, func() {})
	step("Suspended", 1, func() { api.age(Unused) })
	step("Running", 0, func() {
		api.age(Unused)
		api.beforeSuspend = func() {
			if _, err := c.touch(context.Background(), c.sandbox); err != nil {
				t.Error(err)
			}
		}
	})
	if err := c.Suspend(t.Context()); err != nil || mode(c) != "Suspended" {
		t.Errorf("it is %v, %v", mode(c), err)
	}
}

// TestKept: a claim that is used is kept for as long again.
func TestKept(t *testing.T) {
	api, pool := newPool(t)
	c := pool.Claim("alice", "x")
	ends := func() time.Time {
		raw, _ := json.Marshal(api.objects[c.path()])
		var got claim
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		return got.Spec.Lifecycle.ShutdownTime
	}
	if err := c.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := ends()
	api.objects[c.path()]["spec"].(map[string]any)["lifecycle"].(map[string]any)["shutdownTime"] = first.Add(-2 * keptSlack)
	if err := c.prepare(t.Context()); err != nil || ends().Before(first) {
		t.Errorf("it ends at %v, before %v; %v", ends(), first, err)
	}
}

// TestUnknownCredentials: a configuration whose credentials would be left out is refused.
func TestUnknownCredentials(t *testing.T) {
	_, pool := newPool(t)
	t.Setenv("PATH", writeKubectl(t, `{"clusters":[{"cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"user":{"as":"root"}}]}`))
	err := pool.Claim("alice", "x").prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "auth-provider or as") {
		t.Errorf("%v", err)
	}
}

// writeKubectl returns a PATH with a kubectl that prints a configuration.
func writeKubectl(t testing.TB, config string) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\ncat <<'END'\n"+config+"\nEND\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	return bin + string(filepath.ListSeparator) + os.Getenv("PATH")
}
