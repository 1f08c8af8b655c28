//go:build slow

package cluster

import (
	"fmt"
	"sync"
	"time"
)

// stuck is the name of workspaces whose sandboxes never become ready.
const stuck = "stuck"

// An engine does what the controllers of agent-sandbox and of Kubernetes do, as far as claims see it.
type engine struct {
	done map[string]string // by the UID of an object: what was done for which generation of it
}

// run works until the end of the test.
func (e *engine) run(c *cluster) {
	e.done = map[string]string{}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				e.step(c)
			}
		}
	})
	c.t.Cleanup(func() { close(end); ended.Wait() })
}

// step looks at every object once.
func (e *engine) step(c *cluster) {
	all, err := c.objects("sandboxclaims")
	boxes, err2 := c.objects("sandboxes")
	if err != nil || err2 != nil {
		return
	}
	claims := map[string]object{}
	for _, claim := range all {
		claims[claim.Metadata.UID] = claim
		e.assign(c, claim)
	}
	for _, box := range boxes {
		m := box.Metadata
		pod := m.Annotations["agents.x-k8s.io/pod-name"]
		claim, owned := claims[m.OwnerReferences[0].UID]
		if !owned { // what the collector of garbage does
			e.once(m.UID, "deleted", func() {
				e.do(c, "", "delete", "sandbox", m.Name, "--ignore-not-found")
				e.do(c, "", "delete", "pod", pod, "--ignore-not-found", "--grace-period=0", "--force")
			})
			continue
		}
		e.once(m.UID, box.Spec.OperatingMode+fmt.Sprint(m.Generation), func() {
			e.mode(c, box, pod, claim.Metadata.Annotations["toolhost/workspace"] == stuck)
		})
	}
}

// assign gives a claim a sandbox.
func (e *engine) assign(c *cluster, claim object) {
	m := claim.Metadata
	e.once(m.UID, "", func() {
		if claim.Spec.WarmPoolRef.Name != "toolhost" {
			e.status(c, "sandboxclaim", m.Name, condition(false, m.Generation, "WarmPoolNotFound", "SandboxWarmPool not found"), "")
			return
		}
		box := "box-" + m.UID[:8]
		e.do(c, fmt.Sprintf(boxOf, box, m.UID[:8], m.Name, m.UID), "apply", "-f", "-")
		e.status(c, "sandboxclaim", m.Name, condition(false, m.Generation, "SandboxNotReady", "Sandbox is not ready"),
			box)
	})
}

// mode makes a sandbox run, or suspends it.
func (e *engine) mode(c *cluster, box object, pod string, stuck bool) {
	m := box.Metadata
	switch {
	case box.Spec.OperatingMode == "Suspended":
		e.do(c, "", "delete", "pod", pod, "--ignore-not-found", "--grace-period=0", "--force")
		e.status(c, "sandbox", m.Name, condition(false, m.Generation, "SandboxSuspended", "Sandbox is suspended"), "")
	case stuck:
		e.status(c, "sandbox", m.Name, condition(false, m.Generation, "DependenciesNotReady", "Pod exists with phase: Pending"), "")
	default:
		e.do(c, fmt.Sprintf(podOf, pod), "apply", "-f", "-")
		e.status(c, "sandbox", m.Name, condition(true, m.Generation, "DependenciesReady", "Pod is Ready"), "")
	}
}

// boxOf is a sandbox of a claim.
const boxOf = `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":%q,"namespace":"toolhost",
	"annotations":{"agents.x-k8s.io/pod-name":"pod-%s"},
	"ownerReferences":[{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","name":%q,"uid":%q,"controller":true}]},
	"spec":{"podTemplate":{"spec":{}}}}`

// podOf is a pod that the namespace admits, on the node.
const podOf = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"toolhost"},"spec":{"nodeName":"node",
	"securityContext":{"runAsNonRoot":true,"runAsUser":65532,"seccompProfile":{"type":"RuntimeDefault"}},
	"containers":[{"name":"toolhost","image":"toolhost","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`

// once does something for a state of an object.
func (e *engine) once(uid, state string, do func()) {
	if done, known := e.done[uid]; !known || done != state {
		e.done[uid] = state
		do()
	}
}

func condition(ready bool, generation int64, reason, message string) string {
	status := map[bool]string{true: "True", false: "False"}[ready]
	return fmt.Sprintf(`{"type":"Ready","status":%q,"reason":%q,"message":%q,"observedGeneration":%d,"lastTransitionTime":%q}`,
		status, reason, message, generation, time.Now().UTC().Format(time.RFC3339))
}

func (e *engine) status(c *cluster, kind, name, condition, box string) {
	more := ""
	if box != "" {
		more = fmt.Sprintf(`,"sandbox":{"name":%q}`, box)
	}
	e.do(c, "", "patch", kind, name, "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"conditions":[%s]%s}}`, condition, more))
}

// do calls kubectl. What fails because an object has gone is of no matter.
func (e *engine) do(c *cluster, input string, args ...string) {
	if out, err := c.try(c.admin, input, append([]string{"-n", "toolhost"}, args...)...); err != nil {
		c.t.Logf("the engine: kubectl %q: %v %s", args, err, out)
	}
}
