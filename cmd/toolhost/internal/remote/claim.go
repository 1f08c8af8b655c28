package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/kube"
)

const (
	// readyTime is how long one dial waits for a sandbox. It is shorter than [LinkWait], so that a call that waits learns
	// what the sandbox waits for; the next dial goes on with the same claim.
	readyTime = 15 * time.Second
	// endTime bounds what is done with a claim after the last link.
	endTime = 15 * time.Second
)

// defaultWorkspace is the workspace of a target that names none.
const defaultWorkspace = "default"

// podAnnotation of a sandbox names its pod; without it the pod has the name of the sandbox.
const podAnnotation = "agents.x-k8s.io/pod-name"

// The kinds of principals: two with the same name are different.
const (
	frontKind = "front" // of the tokens of a front
	userKind  = "user"  // of the cluster
)

// A Claim is a workspace of a pool: the SandboxClaim of one principal and one name. Its name derives from them, so any
// number of processes find the same one, and the API server lets one of them create it.
type Claim struct {
	// Principal is whose workspace it is. Empty: the user whom the API server sees.
	Principal string
	// Workspace is its name.
	Workspace string

	pool         *Pool
	sandbox, pod string // that the engine gave; of the dial alone

	mu    sync.Mutex
	name  string    // of the SandboxClaim; empty until it is known
	until time.Time // when the engine will delete it
}

// Target returns the claim as a target.
func (c *Claim) Target() Target {
	return Target{Name: c.pool.Name + "/" + c.Workspace, Sandbox: c}
}

// claimName is the name of the SandboxClaim of a principal of a kind.
func (p *Pool) claimName(kind, principal, workspace string) string {
	return "toolhost-" + digest(kind, principal, p.pool, workspace)
}

// find finds out who the principal is, and with that the name of the SandboxClaim.
func (c *Claim) find(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name != "" {
		return nil
	}
	user, err := c.pool.whoami(ctx)
	if err != nil {
		return err
	}
	c.Principal, c.name = user, c.pool.claimName(userKind, user, c.Workspace)
	return nil
}

// A claim is a SandboxClaim of the API.
type claim struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Metadata   metadata  `json:"metadata"`
	Spec       claimSpec `json:"spec"`
	Status     struct {
		Conditions []condition
		Sandbox    struct{ Name string }
	} `json:"status,omitzero"`
}

type claimSpec struct {
	WarmPoolRef *named     `json:"warmPoolRef,omitempty"`
	Lifecycle   *lifecycle `json:"lifecycle,omitempty"`
}

type named struct {
	Name string `json:"name"`
}

type lifecycle struct {
	ShutdownTime   time.Time `json:"shutdownTime"`
	ShutdownPolicy string    `json:"shutdownPolicy"`
}

// A condition is what the engine says of an object.
type condition struct {
	Type, Status, Reason, Message string
	ObservedGeneration            int64
}

// readiness returns the condition Ready; an empty one if there is none.
func readiness(all []condition) condition {
	for _, c := range all {
		if c.Type == "Ready" {
			return c
		}
	}
	return condition{}
}

// fresh is a claim to create.
func (c *Claim) fresh() claim {
	return claim{
		APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim",
		Metadata: metadata{
			Name: c.name,
			Labels: map[string]string{
				poolLabel:      labelValue(c.pool.pool),
				principalLabel: labelValue(c.Principal),
				workspaceLabel: labelValue(c.Workspace),
			},
			Annotations: map[string]string{principalLabel: c.Principal, workspaceLabel: c.Workspace},
		},
		Spec: claimSpec{WarmPoolRef: &named{c.pool.pool}, Lifecycle: keptUntil(time.Now().Add(Kept))},
	}
}

func keptUntil(t time.Time) *lifecycle {
	return &lifecycle{ShutdownTime: t.UTC().Truncate(time.Second), ShutdownPolicy: "Delete"}
}

// obtain returns the claim, which it creates if there is none. One that is being deleted is waited for.
func (c *Claim) obtain(ctx context.Context) (got claim, err error) {
	for {
		got = claim{}
		err = c.pool.do(ctx, kube.Request{Method: http.MethodGet, Path: c.path()}, &got)
		if kube.Is(err, http.StatusNotFound) {
			err = c.pool.do(ctx, kube.Request{Method: http.MethodPost, Path: c.pool.claims(), In: c.fresh()}, &got)
			if kube.Is(err, http.StatusConflict) { // another process was faster
				continue
			}
		}
		switch {
		case err != nil:
			return got, fmt.Errorf("the claim %s cannot be made: %w", c.name, err)
		case !c.isOurs(got):
			return got, Refusal{fmt.Errorf("the claim %s is not that of the workspace %q of %s: "+
				"somebody else made or changed it; to see it: %s", c.name, c.Workspace, c.Principal, c.See())}
		case got.Metadata.DeletionTimestamp == "" && readiness(got.Status.Conditions).Reason != "ClaimExpired":
			return got, nil
		}
		err = c.watch(ctx, c.pool.claims(), c.name,
			func(_ json.RawMessage, gone bool) (bool, error) { return gone, nil })
		if err != nil {
			return got, fmt.Errorf("the claim %s is being deleted, and a new one waits for that: %w", c.name, err)
		}
	}
}

// isOurs reports whether a SandboxClaim is what we would create.
func (c *Claim) isOurs(got claim) bool {
	texts := got.Metadata.Annotations
	return texts[principalLabel] == c.Principal && texts[workspaceLabel] == c.Workspace &&
		got.Spec.WarmPoolRef != nil && got.Spec.WarmPoolRef.Name == c.pool.pool
}

func (c *Claim) path() string { return c.pool.claims() + "/" + c.name }

// watch passes one object to each whenever it changes.
func (c *Claim) watch(ctx context.Context, path, name string, each kube.Each) error {
	api, err := c.pool.client(ctx)
	if err != nil {
		return err
	}
	return api.Watch(ctx, path, url.Values{"fieldSelector": {"metadata.name=" + name}}, each)
}

// lasting are the reasons that stay until somebody changes the pool or its template.
var lasting = []string{
	"WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata", "EnvVarsInjectionRejected", "VolumeClaimTemplatesError",
}

// prepare makes the sandbox of the claim run and finds its pod.
func (c *Claim) prepare(ctx context.Context) error {
	whole := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime,
		fmt.Errorf("the API server did not answer in %s", readyTime))
	defer cancel()
	var last condition
	err := c.find(ctx)
	if err == nil {
		err = c.await(ctx, &last)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && whole.Err() == nil && last.Reason != "":
		return fmt.Errorf("the sandbox of the claim %s is not ready after %s: %s: %s%s; to see more: %s",
			c.name, readyTime, last.Reason, last.Message, c.pool.emptiness(whole), c.See())
	case kube.Denied(err):
		return Refusal{fmt.Errorf("%s: %w", c.pool.Name, err)}
	}
	return fmt.Errorf("%s: %w", c.pool.Name, err)
}

// await waits for the sandbox. last is what the engine says meanwhile.
func (c *Claim) await(ctx context.Context, last *condition) error {
	got, err := c.obtain(ctx)
	if err != nil {
		return err
	}
	*last = condition{
		Reason: "Pending", Message: "the engine has said nothing of it: is the agent-sandbox controller running?",
	}
	c.mu.Lock()
	if c.until = (time.Time{}); got.Spec.Lifecycle != nil {
		c.until = got.Spec.Lifecycle.ShutdownTime
	}
	c.mu.Unlock()
	if c.sandbox = got.Status.Sandbox.Name; c.sandbox == "" {
		if err := c.watch(ctx, c.pool.claims(), c.name, c.assigned(last)); err != nil {
			return err
		}
	}
	generation, err := c.touch(ctx, c.sandbox)
	if err != nil {
		return err
	}
	return c.watch(ctx, c.pool.sandboxes(), c.sandbox, func(raw json.RawMessage, gone bool) (bool, error) {
		var s struct {
			Metadata metadata
			Status   struct{ Conditions []condition }
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			return false, err
		}
		if gone {
			return false, fmt.Errorf("the sandbox %s was deleted while it was waited for", c.sandbox)
		}
		ready := readiness(s.Status.Conditions)
		if ready.Reason != "" {
			*last = ready
		}
		c.pod = cmp.Or(s.Metadata.Annotations[podAnnotation], c.sandbox)
		return ready.Status == "True" && ready.ObservedGeneration >= generation, nil
	})
}

// assigned waits until the engine has given the claim a sandbox.
func (c *Claim) assigned(last *condition) kube.Each {
	return func(raw json.RawMessage, gone bool) (bool, error) {
		var got claim
		if err := json.Unmarshal(raw, &got); err != nil {
			return false, err
		}
		ready := readiness(got.Status.Conditions)
		if ready.Reason != "" {
			*last = ready
		}
		switch {
		case gone:
			return false, fmt.Errorf("the claim %s was deleted while it was waited for", c.name)
		case slices.Contains(lasting, ready.Reason):
			return false, Refusal{fmt.Errorf("the claim %s gets no sandbox: %s: %s; "+
				"to see the pool: %s get sandboxwarmpools,sandboxtemplates", c.name, ready.Reason, ready.Message, c.pool.kubectl())}
		}
		c.sandbox = got.Status.Sandbox.Name
		return c.sandbox != "", nil
	}
}

// touch records that the sandbox is used, and makes it run. It returns the generation of the sandbox after that.
func (c *Claim) touch(ctx context.Context, sandbox string) (generation int64, err error) {
	patch := map[string]any{
		"metadata": metadata{
			Labels:      map[string]string{poolLabel: labelValue(c.pool.pool), stateLabel: stateRunning},
			Annotations: map[string]string{usedAnnotation: time.Now().UTC().Format(time.RFC3339)},
		},
		"spec": map[string]string{"operatingMode": "Running"},
	}
	var got listed
	err = c.pool.do(ctx, kube.Request{Method: http.MethodPatch, Path: c.pool.sandboxes() + "/" + sandbox, In: patch},
		&got)
	if err != nil {
		return 0, fmt.Errorf("the sandbox %s cannot be changed: %w", sandbox, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(Kept); until.Sub(c.until) > keptSlack {
		longer := map[string]any{"spec": claimSpec{Lifecycle: keptUntil(until)}}
		if err := c.pool.do(ctx, kube.Request{Method: http.MethodPatch, Path: c.path(), In: longer}, nil); err != nil {
			return 0, fmt.Errorf("the claim %s cannot be changed: %w", c.name, err)
		}
		c.until = until
	}
	return got.Metadata.Generation, nil
}

// touchUntil touches a sandbox as long as a link is open. A touch that fails is repeated: the link says if the sandbox
// has gone.
func (c *Claim) touchUntil(sandbox string, ended <-chan struct{}) {
	tick := time.NewTicker(TouchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			_, _ = c.touch(context.Background(), sandbox) // each request has a limit of its own
		}
	}
}

// Suspend ends the pod of the workspace and keeps its volumes. The next link starts it again.
func (c *Claim) Suspend(ctx context.Context) error {
	return c.end(ctx, "suspended", func(ctx context.Context) error {
		var got claim
		err := c.pool.do(ctx, kube.Request{Method: http.MethodGet, Path: c.path()}, &got)
		if err != nil || got.Status.Sandbox.Name == "" {
			return err
		}
		return c.pool.suspend(ctx, got.Status.Sandbox.Name, "")
	})
}

// Release deletes the claim, and with it the pod of the workspace and its volumes.
func (c *Claim) Release(ctx context.Context) error {
	return c.end(ctx, "deleted", func(ctx context.Context) error {
		return c.pool.do(ctx, kube.Request{Method: http.MethodDelete, Path: c.path()}, nil)
	})
}

// end does something with a claim, unless there is none.
func (c *Claim) end(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endTime, fmt.Errorf("the API server took longer than %s", endTime))
	defer cancel()
	err := c.find(ctx)
	if err == nil {
		err = do(ctx)
	}
	if err != nil && !kube.Is(err, http.StatusNotFound) {
		return fmt.Errorf("%s: the claim %s was not %s: %w; to see it: %s", c.pool.Name, c.name, what, err, c.See())
	}
	return nil
}

// See is a command that shows the claim.
func (c *Claim) See() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" {
		return c.pool.kubectl() + " get sandboxclaims"
	}
	return c.pool.kubectl() + " describe sandboxclaim " + c.name
}

// kubectl is how kubectl is called for the namespace of the pool.
func (p *Pool) kubectl() string {
	line := "kubectl"
	if p.context != "" {
		line += " --context " + quote(p.context)
	}
	return line + " -n " + p.namespace
}

// emptiness says that the pool is empty, if it is and that can be seen.
func (p *Pool) emptiness(ctx context.Context) string {
	var got struct {
		Spec   struct{ Replicas int }
		Status struct{ ReadyReplicas int }
	}
	err := p.do(ctx, kube.Request{Method: http.MethodGet, Path: fmt.Sprintf(poolsPath, p.namespace) + "/" + p.pool},
		&got)
	if err != nil || got.Status.ReadyReplicas > 0 {
		return ""
	}
	return fmt.Sprintf("; the pool %s is empty, 0 of %d sandboxes are ready, so a new one is started",
		p.pool, got.Spec.Replicas)
}

// exec starts a command in the pod of the sandbox.
func (c *Claim) exec(ctx context.Context, argv ...string) (*kube.Command, error) {
	api, err := c.pool.client(ctx)
	if err != nil {
		return nil, err
	}
	command, err := api.Exec(ctx, c.pool.namespace, c.pod, argv...)
	if err != nil {
		err = fmt.Errorf("%s: no command can be started in the pod %s: %w", c.pool.Name, c.pod, err)
		if kube.Denied(err) {
			err = Refusal{err}
		}
	}
	return command, err
}
