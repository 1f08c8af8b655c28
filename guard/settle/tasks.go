package settle

import (
	"os"
	"path/filepath"

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
	statedir.ShareLock(p.store.tasks)
	p.claimForTasks()
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

// claimForTasks leaves what has changed or is held inside to the tasks that run.
func (p *place) claimForTasks() {
	if p.ofTasks == nil {
		p.ofTasks = map[name]bool{}
	}
	now := p.scan()
	var claimed []name
	for _, rel := range namesOf(&p.rec, now) {
		was, h := p.rec.Files[rel], p.rec.Held[rel]
		if h != nil && p.isIn(h) || h == nil && now.leaves[rel] != was.Stamp {
			p.ofTasks[rel], claimed = true, append(claimed, rel)
		}
	}
	if err := p.store.claim(claimed); err != nil {
		p.note("Other hosts may hold protected files that a task has changed before it ends: %v.", err)
	}
}

// joinTasks prepares the place for a call that begins while only tasks run.
func (p *place) joinTasks() {
	if err := p.store.unclaim(); err != nil {
		p.note("What tasks have changed before cannot be told: %v.", err)
	}
	p.claimForTasks()
	p.enter()
}

// leaveTasks settles what the last call has changed while only tasks go on. While git works, nothing is settled: it may
// be a task that works.
func (p *place) leaveTasks() {
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
	if !p.gitWorks() {
		p.settle()
	}
}

// gitWorks reports whether a git command that takes several steps is under way in a repository of the directory.
func (p *place) gitWorks() bool {
	_, err := os.Lstat(filepath.Join(p.dir, ".git", "index.lock"))
	return err == nil || len(p.scan().states) > 0
}

// tell names changes that are not settled yet, because other commands run.
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
