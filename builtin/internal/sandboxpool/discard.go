package sandboxpool

import "fmt"

// maxDiscarded bounds what commands may change in plan mode, in bytes of memory.
const maxDiscarded = 1 << 30

// DiscardNote returns a note, once, if what commands change in the sandbox is dropped.
func (c *Sandbox) DiscardNote() (note string) {
	if !c.discard {
		return ""
	}
	c.told.Do(func() {
		note = "Plan mode: only commands see what commands change, and it is dropped when the plan ends."
		if err := c.box.NoOverlay(); err != nil {
			note = fmt.Sprintf("Plan mode: commands can write temporary files only, which are dropped when the plan ends (%v).",
				err)
		}
	})
	return note
}

// Discards reports whether what commands change in the sandbox is dropped.
func (c *Sandbox) Discards() bool { return c.discard }

// Drop ends the sandbox with a key, and what runs in it.
func (cs *Pool) Drop(key string) {
	cs.forget(func(other string) bool { return other == key })
	cs.closeRetired(func(c *Sandbox) bool { return c.key == key })
}
