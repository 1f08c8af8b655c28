package mcpserver

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// A caller may have a root of its own, named by its token, within the roots of the host. Its tools and commands work
// there, and can neither read nor write the rest of the host's roots. Its questions go to its own client only.

// callerRoots holds the roots of callers by principal. Only [rootVerifier] sets them, before anything is done for the
// caller.
type callerRoots struct {
	mu  sync.Mutex
	all map[string]string
}

// of returns the root of a caller, without symbolic links; "" if it has the roots of the host.
func (r *callerRoots) of(principal string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[principal]
}

// set sets the root of a caller, and reports whether it was another one.
func (r *callerRoots) set(principal, root string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[principal] == root {
		return false
	}
	if r.all == nil {
		r.all = map[string]string{}
	}
	r.all[principal] = root
	return true
}

// rootVerifier is a verifier that gives callers their roots.
type rootVerifier struct {
	auth.Verifier
	policies *policies
}

// Verify implements [auth.Verifier]. A root that is not in the roots of the host is refused.
func (v rootVerifier) Verify(ctx context.Context, bearer string) (auth.Identity, error) {
	who, err := v.Verifier.Verify(ctx, bearer)
	if err != nil {
		return who, err
	}
	root := ""
	if who.Root != "" {
		if root, err = v.policies.insideRoots(who.Root); err != nil {
			return auth.Identity{}, &auth.Error{Kind: auth.Insufficient, Cause: err,
				Reason: "the root of this token is not a directory in the roots of this host: the owner of this host can make a " +
					"token with another"}
		}
	}
	if v.policies.roots.set(who.Principal, root) {
		v.policies.forget(who.Principal)
	}
	return who, nil
}

var errOutsideRoots = errors.New("it lies outside of the roots")

// insideRoots returns the real path of a directory in the roots of the host.
func (p *policies) insideRoots(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(p.cfg.Roots, func(root string) bool {
		host, err := filepath.EvalSymlinks(root)
		if err != nil {
			return false
		}
		rel, err := filepath.Rel(host, real)
		return err == nil && filepath.IsLocal(rel)
	}) {
		return "", errOutsideRoots
	}
	return real, nil
}

// others returns the directories with the files of other callers.
func (p *policies) others() []string {
	if p.cfg.Apart == "" {
		return p.cfg.Roots
	}
	return append(slices.Clone(p.cfg.Roots), p.cfg.Apart)
}

// rooted returns the settings of a caller with a root of its own: its commands cannot read the other files of the
// host's roots, and none of them leaves the sandbox.
func (p *policies) rooted(set *settings.Settings, root string) *settings.Settings {
	own := *set
	own.AdditionalDirectories = nil
	own.Sandbox.AllowUnsandboxedCommands, own.Sandbox.ExcludedCommands = false, nil
	file := "the root of the token"
	own.Sandbox.Filesystem.DenyRead = slices.Clip(own.Sandbox.Filesystem.DenyRead)
	for _, dir := range p.others() {
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != root {
			own.Sandbox.Filesystem.DenyRead = append(own.Sandbox.Filesystem.DenyRead,
				settings.Entry{Text: dir, File: file})
		}
	}
	own.Sandbox.Filesystem.AllowRead = append(slices.Clip(own.Sandbox.Filesystem.AllowRead),
		settings.Entry{Text: root, File: file})
	return &own
}

// asksOperator reports whether the questions of a caller are for the operator: those of a caller with a root of its own
// are for its client alone.
func (p *approver) asksOperator(principal string) bool {
	return p.policies.roots.of(p.policies.children.caller(principal)) == "" && p.operatorPresent()
}
