package mcpserver

import (
	"sync/atomic"

	"toolhost/guard/settings"
)

// A lookout lets calls that came in together share one look at the settings. A look is good for every call that had arrived before it
// began, as long as no call has ended since that could have changed them: of those the later ones wait for the earlier.
type lookout struct {
	arrived atomic.Uint64 // how often messages were taken from the client; those taken together have one number
	last    atomic.Pointer[look]
}

// A look is what the settings were found to be.
type look struct {
	arrived  uint64 // the last number that was given when it began
	changes  uint64 // Host.changes then
	settings *settings.Settings
}

// settingsFor are the settings in force for a call, whose turn has come.
func (h *Host) settingsFor(a *Arrival) *settings.Settings {
	if a.looks == nil {
		return h.settings.Reload()
	}
	now := look{arrived: a.looks.arrived.Load(), changes: h.changes.Load()}
	if last := a.looks.last.Load(); last != nil && last.arrived >= a.number && last.changes == now.changes {
		return last.settings
	}
	now.settings = h.settings.Reload()
	a.looks.last.Store(&now)
	return now.settings
}
