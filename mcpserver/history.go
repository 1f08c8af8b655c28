package mcpserver

import (
	"context"

	"github.com/toolhost/toolhost/builtin"
)

// The history as the owner of the machine sees it: the changes of all principals, by the rules in force.

// Changes lists changes of files, newest first.
func (h *Host) Changes(f builtin.ChangeFilter) ([]builtin.Change, error) {
	f.Principal = builtin.AnyPrincipal
	return h.box.Changes(h.policy(LocalPrincipal), f)
}

// Holdings returns whose changes take how much of the disk, the most first.
func (h *Host) Holdings() ([]builtin.Holding, error) { return h.box.Holdings() }

// ShowChange returns one change and its diff. The beginning of its id does.
func (h *Host) ShowChange(id string) (builtin.Change, string, error) {
	return h.box.ShowChange(h.policy(LocalPrincipal), builtin.AnyPrincipal, id)
}

// Undo restores what files held before the selected changes, and tells for each file what became of it.
func (h *Host) Undo(ctx context.Context, sel builtin.UndoSelection) ([]builtin.Undone, error) {
	sel.Principal = builtin.AnyPrincipal
	a := h.AdmitNamed("")
	defer a.Leave()
	if err := a.ticket.Enter(ctx, false); err != nil {
		return nil, err
	}
	return h.box.Undo(ctx, h.env(a, h.policy(LocalPrincipal), Request{Tool: "undo"}), sel)
}
