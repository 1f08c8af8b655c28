package settle

import "sync"

// A Command is a command that runs in some directories, or a tool that looks at the files that commands see. Its
// methods may be called from several goroutines.
type Command struct {
	k    *Keeper
	dirs []string

	mu    sync.Mutex
	task  bool // it runs in the background
	over  bool
	fresh []File
}

// Begin begins a command that may write some directories. It exchanges their held files in, unless other commands run
// there, and returns notes on what other programs or a killed host have done. With keep, which a mode without questions
// sets, changes stay. An error means that the command must not run.
func (k *Keeper) Begin(dirs []string, keep bool) (c *Command, notes []string, err error) {
	c = &Command{k: k}
	for _, dir := range dirs {
		p, err := k.place(dir)
		if err == nil {
			var more []string
			more, err = p.begin(keep)
			notes = append(notes, more...)
		}
		if err != nil {
			c.End()
			return nil, notes, err
		}
		c.dirs = append(c.dirs, dir)
	}
	return c, notes, nil
}

// GitPrelude is the text before that of a shell command, see [Command.Prelude]. It adds to the settings that the
// variables of git name.
const GitPrelude = "export GIT_CONFIG_KEY_${GIT_CONFIG_COUNT:-0}=core.trustctime " +
	"GIT_CONFIG_VALUE_${GIT_CONFIG_COUNT:-0}=false " +
	"GIT_CONFIG_COUNT=$((${GIT_CONFIG_COUNT:-0}+1)); "

// Prelude returns the text that must precede that of a shell command, "" if no files were exchanged for it. An
// exchange changes the time of the last status change of a file: git would take the file for changed, and git merge
// --abort would fail.
func (c *Command) Prelude() string {
	if c == nil || len(c.k.Holding(c.dirs)) == 0 {
		return ""
	}
	return GitPrelude
}

// Background makes the command a task, and returns notes. Files that have changed until now stay as they are until
// the last task has ended, because the task may depend on them.
func (c *Command) Background() (notes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task || c.over {
		return nil
	}
	c.task = true
	for _, dir := range c.dirs {
		if p, err := c.k.place(dir); err == nil {
			notes = append(notes, p.background()...)
		}
	}
	return notes
}

// End says that every process of the command has ended. It settles the directories in which no command runs any more.
// Where only tasks run, it settles what has changed since only tasks run. It returns notes on what is held.
func (c *Command) End() (notes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	c.over = true
	for _, dir := range c.dirs {
		if p, err := c.k.place(dir); err == nil {
			more, fresh := p.end(c.task)
			notes, c.fresh = append(notes, more...), append(c.fresh, fresh...)
		}
	}
	return notes
}

// Fresh returns the files that are held since the end of the command, and were not held with this content before.
func (c *Command) Fresh() []File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fresh
}
