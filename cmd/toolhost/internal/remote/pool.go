package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/kube"
)

const (
	// TouchEvery is how often a link records that it uses its sandbox.
	TouchEvery = 2 * time.Minute
	// Unused is how long a sandbox must be unused before [Pool.SuspendUnused] suspends it: the pod ends, its volumes
	// stay.
	Unused = 5 * time.Minute
	// Kept is how long the engine keeps a claim, with its volumes, that nothing uses.
	Kept = 7 * 24 * time.Hour
	// keptSlack is how much of Kept may have passed before the time until which the claim is kept is changed.
	keptSlack = time.Hour
	// suspendTime bounds one run of SuspendUnused, and listPart is how many sandboxes are listed at once.
	suspendTime, listPart = time.Minute, "500"
)

// Labels of claims and of their sandboxes, by which a person can select them. A text that cannot be the value of a
// label is replaced by its hash; annotations of claims have the text itself.
const (
	poolLabel      = "toolhost/pool"
	principalLabel = "toolhost/principal"
	workspaceLabel = "toolhost/workspace"
	stateLabel     = "toolhost/state" // of sandboxes
	usedAnnotation = "toolhost/used"  // of sandboxes: when

	stateRunning, stateSuspended = "running", "suspended"
)

const (
	claimsPath    = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/%s/sandboxclaims"
	poolsPath     = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/%s/sandboxwarmpools"
	sandboxesPath = "/apis/agents.x-k8s.io/v1beta1/namespaces/%s/sandboxes"
	whoamiPath    = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// onlyMetadata makes a list short: a sandbox holds the whole template of its pod.
const onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// A Pool is a warm pool of agent-sandbox, whose sandboxes are workspaces.
type Pool struct {
	// Name is the target of the pool, without a workspace.
	Name string

	context, namespace, pool string

	mu   sync.Mutex
	api  *kube.Client // nil until it is needed
	user string       // whom the API server sees; empty until it is asked
}

// IsPool reports whether a target is a warm pool, or a workspace of one.
func IsPool(target string) bool { return strings.HasPrefix(target, poolTarget) }

// ParsePool reads the target of a pool.
func ParsePool(target string) (*Pool, error) {
	t, err := Parse(target)
	if err != nil {
		return nil, err
	}
	if t.Sandbox == nil || t.Sandbox.pool.Name != target {
		return nil, fmt.Errorf("%q is not a pool of the form sandbox://[CONTEXT@]NAMESPACE/POOL", target)
	}
	return t.Sandbox.pool, nil
}

// Claim returns the claim for a workspace of a principal, which need not exist. It is not the claim that toolhost
// remote makes for a user of the same name.
func (p *Pool) Claim(principal, workspace string) *Claim {
	return &Claim{pool: p, Principal: principal, Workspace: workspace,
		name: p.claimName(frontKind, principal, workspace)}
}

// client returns the client, which it makes when there is none.
func (p *Pool) client(ctx context.Context) (*kube.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.api != nil {
		return p.api, nil
	}
	api, err := kube.Open(ctx, p.context)
	if err != nil {
		return nil, Refusal{err}
	}
	p.api = api
	return api, nil
}

// Close closes the connections that nothing uses.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.api != nil {
		p.api.Close()
	}
}

// do makes one request.
func (p *Pool) do(ctx context.Context, r kube.Request, out any) error {
	api, err := p.client(ctx)
	if err != nil {
		return err
	}
	return api.Do(ctx, r, out)
}

func (p *Pool) claims() string    { return fmt.Sprintf(claimsPath, p.namespace) }
func (p *Pool) sandboxes() string { return fmt.Sprintf(sandboxesPath, p.namespace) }

// whoami returns the name of the user whom the API server sees.
func (p *Pool) whoami(ctx context.Context) (string, error) {
	p.mu.Lock()
	user := p.user
	p.mu.Unlock()
	if user != "" {
		return user, nil
	}
	var review struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	in := map[string]string{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
	if err := p.do(ctx, kube.Request{Method: http.MethodPost, Path: whoamiPath, In: in}, &review); err != nil {
		return "", err
	}
	user = review.Status.UserInfo.Username
	if user == "" {
		return "", errors.New("the API server does not say who you are: check with: kubectl auth whoami")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = user
	return user, nil
}

// A listed object is its metadata.
type listed struct{ Metadata metadata }

type metadata struct {
	Name              string            `json:"name,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
}

// list passes each object that a selector selects to each.
func (p *Pool) list(ctx context.Context, path, selector string, each func(metadata) error) error {
	query := url.Values{"labelSelector": {selector}, "limit": {listPart}}
	for {
		var part struct {
			Metadata struct{ Continue string }
			Items    []listed
		}
		request := kube.Request{Method: http.MethodGet, Path: path, Query: query, Accept: onlyMetadata}
		if err := p.do(ctx, request, &part); err != nil {
			return err
		}
		for _, item := range part.Items {
			if err := each(item.Metadata); err != nil {
				return err
			}
		}
		if part.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", part.Metadata.Continue)
	}
}

// Workspaces returns the names of the workspaces that a principal has, suspended ones too.
func (p *Pool) Workspaces(ctx context.Context, principal string) (names []string, err error) {
	selector := poolLabel + "=" + labelValue(p.pool) + "," + principalLabel + "=" + labelValue(principal)
	err = p.list(ctx, p.claims(), selector, func(m metadata) error {
		workspace := m.Annotations[workspaceLabel]
		if m.Name == p.claimName(frontKind, principal, workspace) && m.DeletionTimestamp == "" {
			names = append(names, workspace)
		}
		return nil
	})
	return names, err
}

// SuspendUnused suspends the sandboxes of the pool that nothing has used for [Unused], and returns how many. Any number
// of fronts may do so: one that is used in the same moment is not suspended.
func (p *Pool) SuspendUnused(ctx context.Context) (suspended int, err error) {
	late := fmt.Errorf("unused sandboxes were not all suspended in %s", suspendTime)
	ctx, cancel := context.WithTimeoutCause(ctx, suspendTime, late)
	defer cancel()
	selector := poolLabel + "=" + labelValue(p.pool) + "," + stateLabel + "=" + stateRunning
	err = p.list(ctx, p.sandboxes(), selector, func(m metadata) error {
		used, err := time.Parse(time.RFC3339, m.Annotations[usedAnnotation])
		if err != nil || time.Since(used) < Unused || m.DeletionTimestamp != "" {
			return nil
		}
		err = p.suspend(ctx, m.Name, m.ResourceVersion)
		switch {
		case err == nil:
			suspended++
		case kube.Is(err, http.StatusConflict), kube.Is(err, http.StatusNotFound): // it was used, or it has gone
			return nil
		}
		return err
	})
	return suspended, err
}

// suspend suspends a sandbox. If version is not empty, it fails if the sandbox has changed since that version.
func (p *Pool) suspend(ctx context.Context, sandbox, version string) error {
	patch := map[string]any{
		"metadata": metadata{ResourceVersion: version, Labels: map[string]string{stateLabel: stateSuspended}},
		"spec":     map[string]string{"operatingMode": "Suspended"},
	}
	return p.do(ctx, kube.Request{Method: http.MethodPatch, Path: p.sandboxes() + "/" + sandbox, In: patch}, nil)
}

// labelPattern matches what can be the value of a label.
var labelPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
})

// labelValue returns a text as the value of a label: its hash if it cannot be one.
func labelValue(text string) string {
	if labelPattern().MatchString(text) {
		return text
	}
	return "sha256-" + digest(text)
}

// digest returns 128 bits of a hash of texts.
func digest(texts ...string) string {
	raw, _ := json.Marshal(texts) // texts can be marshalled
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
