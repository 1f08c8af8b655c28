//go:build slow

package cluster

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

const pool = "sandbox://toolhost/toolhost"

// account returns the configuration of the account that .release/agent-sandbox gives the role.
func (c *cluster) account() string {
	token := strings.TrimSpace(c.kubectl("", "-n", "toolhost", "create", "token", "toolhost"))
	return c.config("account", map[string]any{"token": token})
}

// bind gives alice a role, and waits until it counts.
func (c *cluster) bind(role string) {
	c.kubectl("", "-n", "toolhost", "create", "rolebinding", "alice", "--role="+role, "--user=alice")
	host.Eventually(c.t, func() string {
		out, _ := c.try(c.admin, "", "-n", "toolhost", "auth", "can-i", "create",
			"sandboxclaims.extensions.agents.x-k8s.io", "--as=alice")
		if strings.TrimSpace(out) != "yes" {
			return "alice has not the role " + role
		}
		return ""
	})
}

// TestCluster runs the tests with one cluster.
func TestCluster(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]func(*cluster, *testing.T){
		"workspace": testWorkspace, "other people": testOtherPeople, "refused": testRefused, "plugin": testPlugin,
		"never ready": testNeverReady, "template": testTemplate, "front": testFront,
	} {
		t.Run(name, func(t *testing.T) {
			one := *c
			one.t = t
			test(&one, t)
			one.kubectl("", "-n", "toolhost", "delete", "sandboxclaims", "--all")
			one.kubectl("", "-n", "toolhost", "delete", "rolebinding", "alice", "--ignore-not-found")
		})
	}
}

// testWorkspace: a workspace is claimed once, with the rights of the role, found again, suspended, resumed with its files,
// and deleted.
func testWorkspace(c *cluster, t *testing.T) {
	config := c.account()
	target := pool + "/My Project"
	var sessions []*host.Session
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range 3 { // at the same moment
		wait.Go(func() {
			s := c.relay(config, target)
			mu.Lock()
			defer mu.Unlock()
			sessions = append(sessions, s)
		})
	}
	wait.Wait()
	sessions[0].MustCall("Write", host.Args{"file_path": "a.txt", "content": "content\n"})
	for _, s := range sessions {
		if got := s.MustCall("Read", host.Args{"file_path": "a.txt"}); !strings.Contains(got, "content") {
			t.Errorf("Read: %s", got)
		}
		s.End()
	}
	claim := c.only("sandboxclaims")
	m, life := claim.Metadata, claim.Spec.Lifecycle
	if m.Annotations["toolhost/workspace"] != "My Project" ||
		m.Annotations["toolhost/principal"] != "system:serviceaccount:toolhost:toolhost" ||
		!strings.HasPrefix(m.Labels["toolhost/workspace"], "sha256-") || m.Labels["toolhost/pool"] != "toolhost" {
		t.Errorf("the claim is %+v", m)
	}
	if left := time.Until(life.ShutdownTime); left < 6*24*time.Hour || left > 8*24*time.Hour ||
		life.ShutdownPolicy != "Delete" {
		t.Errorf("it lives for %v, then %s", left, life.ShutdownPolicy)
	}

	s := c.relay(config, target, "--suspend")
	s.MustCall("Read", host.Args{"file_path": "a.txt"})
	s.End()
	if box := c.only("sandboxes"); box.Spec.OperatingMode != "Suspended" ||
		box.Metadata.Labels["toolhost/state"] != "suspended" {
		t.Errorf("it is not suspended: %+v", box)
	}
	s = c.relay(config, target, "--ephemeral")
	if got := s.MustCall("Read", host.Args{"file_path": "a.txt"}); !strings.Contains(got, "content") {
		t.Errorf("Read after it was resumed: %s", got)
	}
	s.End()
	if all, err := c.objects("sandboxclaims"); err != nil || len(all) != 0 {
		t.Errorf("after --ephemeral there are %+v, %v", all, err)
	}
}

// testOtherPeople: another user has another claim for the same workspace.
func testOtherPeople(c *cluster, t *testing.T) {
	c.bind("toolhost")
	for _, config := range []string{c.account(), c.config("alice", map[string]any{"token": "alice-token"})} {
		out, err := c.toolhost(config, "doctor", "--remote", pool)
		if !strings.Contains(out, "answered within") {
			t.Fatalf("%v %s", err, out)
		}
	}
	if all, err := c.objects("sandboxclaims"); err != nil || len(all) != 2 {
		t.Errorf("the claims are %+v, %v", all, err)
	}
}

// testRefused: what is wrong is said with its name and what to do.
func testRefused(c *cluster, t *testing.T) {
	c.kubectl("", "-n", "toolhost", "create", "role", "claims", "--verb=get,list,watch,create,patch",
		"--resource=sandboxclaims.extensions.agents.x-k8s.io,sandboxes.agents.x-k8s.io")
	c.bind("claims")
	alice, nobody := c.config("alice", map[string]any{"token": "alice-token"}), c.config("nobody",
		map[string]any{"token": "nobody-token"})
	gone := *c
	gone.server = "https://" + freeAddress(t)
	for name, x := range map[string]struct{ config, target, want string }{
		"no right to claims":   {nobody, pool, `cannot get resource "sandboxclaims"`},
		"no right to commands": {alice, pool, `cannot get resource "pods/exec"`},
		"no such pool":         {alice, "sandbox://toolhost/other", "WarmPoolNotFound"},
		"an unknown token":     {c.config("expired", map[string]any{"token": "expired"}), pool, "kubectl auth whoami"},
		"no API server":        {gone.config("gone", map[string]any{"token": "admin-token"}), pool, "no API server answers at https://"},
		"no such context":      {alice, "sandbox://other@toolhost/toolhost", "the configuration of kubectl cannot be read"},
		"no configuration":     {c.put("none.config", ""), pool, "the configuration of kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := c.toolhost(x.config, "doctor", "--remote", x.target)
			if err == nil || !strings.Contains(out, x.want) {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}

// testPlugin: a plugin is asked again when its token is refused.
func testPlugin(c *cluster, t *testing.T) {
	c.bind("toolhost")
	plugin := c.put("plugin", `#!/bin/sh
token=expired-token
[ -e "$0.again" ] && token=alice-token
touch "$0.again"
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$token'"}}'
`)
	host.Must(t, os.Chmod(plugin, 0o700))
	config := c.config("plugin", map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "interactiveMode": "Never"}})
	if out, err := c.toolhost(config, "doctor", "--remote", pool); !strings.Contains(out, "answered within") {
		t.Errorf("%v %s", err, out)
	}
}

// testNeverReady: a sandbox that does not become ready is named with its reason, in bounded time; an empty pool is said.
func testNeverReady(c *cluster, t *testing.T) {
	out, err := c.toolhost(c.account(), "doctor", "--remote", pool+"/"+stuck)
	for _, want := range []string{"is not ready after 15s", "DependenciesNotReady",
		"the pool toolhost is empty, 0 of 2", "describe sandboxclaim toolhost-"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in: %v %s", want, err, out)
		}
	}
}

// testTemplate: the API server admits the pod of the template, and finds it restricted but for the one field that the
// namespace says.
func testTemplate(c *cluster, t *testing.T) {
	spec := c.kubectl("", "-n", "toolhost", "get", "sandboxtemplate", "toolhost", "-o",
		"jsonpath={.spec.podTemplate.spec}")
	spec = strings.Replace(spec, `"volumes":[`, `"volumes":[{"name":"workspace","emptyDir":{}},{"name":"state","emptyDir":{}},`, 1)
	c.kubectl("", "create", "namespace", "strict")
	c.kubectl("", "label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
	create := func(namespace, spec string) (string, error) {
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod","namespace":"` + namespace +
			`"},"spec":` + spec + `}`
		return c.try(c.admin, pod, "create", "--dry-run=server", "--validate=strict", "-f", "-")
	}
	if out, err := create("toolhost", spec); err != nil {
		t.Error(out)
	}
	if out, err := create("strict", strings.Replace(spec, `"procMount":"Unmasked",`, "", 1)); err != nil {
		t.Error(out)
	}
}
