package settle

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// Tasks may run for hours. While one runs, what it depends on must not be exchanged: a rebase that runs a build would
// find other files than it had written. What a call changes while only tasks run besides is settled at its end all the
// same. The tasks may be those of another host: of an agent in a sandbox, for instance.

// background counts a command as a task from now on. What has changed until now may be the task's.
func (p *place) background() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
	_ = statedir.ShareLock(p.store.tasks) // begin has locked another file there
	p.claimForTasks(false)
	p.tell()
	if p.calls == 0 {
		statedir.Unlock(p.store.lock)
	}
	return p.takeNotes()
}

// tasksRun reports whether tasks run, of this host or another one. The caller has the lock alone.
func (p *place) tasksRun() bool {
	if p.users > p.calls {
		return true
	}
	if !statedir.TryLock(p.store.tasks) {
		return true
	}
	statedir.Unlock(p.store.tasks)
	return false
}

// claimForTasks leaves the names that have changed or are held to the tasks that run, and with open also the files
// that are open for writing. It reports whether other hosts know of the claim.
func (p *place) claimForTasks(open bool) bool {
	if p.ofTasks == nil {
		p.ofTasks = map[name]bool{}
	}
	isOpen := map[name]bool{}
	if open { // the scan finds changed what was closed meanwhile
		isOpen = p.openNames()
	}
	now := p.scan()
	written, _ := p.store.claimed()
	var claimed []name
	for _, rel := range namesOf(&p.rec, now) {
		was, h := p.rec.Files[rel], p.rec.Held[rel]
		if h != nil && p.isIn(h) || h == nil && (now.leaves[rel] != was.Stamp || was.Racy && !p.isStill(rel)) ||
			isOpen[rel] {
			p.ofTasks[rel], claimed = true, append(claimed, rel)
		}
	}
	claimed = slices.DeleteFunc(claimed, func(rel name) bool { return slices.Contains(written, rel) })
	err := p.store.claim(claimed)
	if err != nil {
		p.note("Other hosts may hold protected files that a task has changed before it ends: %v.", err)
	}
	return err == nil
}

// openNames returns the names of files that are open for writing, and stay so for a while.
func (p *place) openNames() map[name]bool {
	open := map[name]bool{}
	until := time.Now().Add(openWait)
	for rel := range p.scan().leaves {
		open[rel] = classOf(rel) == Held && p.isOpen(rel, until)
	}
	return open
}

// isStill reports whether a name has the content that was recorded.
func (p *place) isStill(rel name) bool {
	id, _, err := p.at(rel)
	return err == nil && id == p.rec.Files[rel].ID
}

// joinTasks prepares the place for a call that begins while only tasks run.
func (p *place) joinTasks() error {
	p.assign()
	if err := p.store.mark(mixedAt, "1"); err != nil {
		return &stateError{err}
	}
	p.enter()
	return nil
}

// assign leaves changed names to the tasks that run. If no task can have changed them since the last look, a person
// has, and they are not left. The caller has the lock alone.
func (p *place) assign() {
	if p.asleep > 0 && !p.store.mixed() && p.tasksSleep() && p.readClaims() {
		err := p.adopt()
		if err == nil {
			return
		}
		p.note("Protected files that a person has changed count as changed by a task: %v.", err)
	}
	if err := p.store.unclaim(); err != nil {
		p.note("What tasks have changed before cannot be told: %v.", err)
	}
	p.ofTasks = nil
	p.claimForTasks(p.asleep > 0)
}

// readClaims adds the names that tasks of any host claim, and reports whether it could.
func (p *place) readClaims() bool {
	claimed, err := p.store.claimed()
	if err != nil {
		p.note("What tasks have changed before cannot be told: %v.", err)
	}
	if p.ofTasks == nil {
		p.ofTasks = map[name]bool{}
	}
	for _, rel := range claimed {
		p.ofTasks[rel] = true
	}
	return err == nil
}

// leaveTasks settles what the last call has changed while only tasks go on. While git works, it settles nothing,
// because the task may be the one that works.
func (p *place) leaveTasks() {
	if p.readClaims(); !p.gitWorks() {
		p.settle()
	}
	p.assigned()
}

// tasksSleep reports whether all tasks that run are asleep, and none is of another host. A task of this one is, and the
// caller has the lock alone, so no other host looks meanwhile whether tasks run.
func (p *place) tasksSleep() bool {
	alone := statedir.TryLock(p.store.tasks)
	_ = statedir.ShareLock(p.store.tasks)
	return alone && p.users-p.calls == p.asleep
}

// assigned leaves to tasks what has changed and is not settled. If they sleep, all further changes are a person's.
func (p *place) assigned() {
	if p.claimForTasks(p.asleep > 0) && p.asleep > 0 && p.tasksSleep() {
		_ = p.store.mark(mixedAt, "0") // if this fails, no change counts as a person's
	}
}

// sleep says that a task changes nothing any more until wake.
func (p *place) sleep() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep++
	p.alone(p.assigned)
	return p.takeNotes()
}

// wake says that a task may change files from now on. What has changed since it fell asleep was changed by a person,
// or by a call.
func (p *place) wake() ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alone(p.assign)
	err := p.store.mark(mixedAt, "1")
	if err == nil {
		p.asleep--
	}
	return p.takeNotes(), err
}

// alone calls a function if no call runs that settles what has changed.
func (p *place) alone(do func()) {
	if p.calls > 0 || !p.store.lockAlone() {
		return
	}
	defer statedir.Unlock(p.store.lock)
	if err := p.read(); err != nil {
		p.noteUnread(err)
		return
	}
	do()
}

// gitWorks reports whether a git command that takes several steps is under way in a repository of the directory.
func (p *place) gitWorks() bool {
	_, err := os.Lstat(filepath.Join(p.dir, ".git", "index.lock"))
	return err == nil || len(p.scan().states) > 0
}

// tell names changes that are not settled yet because other commands run.
func (p *place) tell() {
	now := p.scan()
	var names []string
	for _, rel := range namesOf(&p.rec, now) {
		if was := p.rec.Files[rel]; classOf(rel) != Held || now.leaves[rel] == was.Stamp && !was.Racy {
			continue
		}
		id, _, err := p.at(rel)
		h := p.rec.Held[rel]
		if err != nil || id == p.rec.Files[rel].ID || h != nil && id == h.Now || p.memory.known[rel][id] ||
			p.told[rel] == id && id != absent {
			continue
		}
		if p.told == nil {
			p.told = map[name]identity{}
		}
		p.told[rel] = id
		names = append(names, rel.String())
	}
	p.noteAll("Changed protected files, which are held as soon as no other command or task runs: %s. "+
		"Until then programs outside see them: tell the user.", names)
}
