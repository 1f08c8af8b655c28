//go:build slow

package settings

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

func TestWatch(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("", "x"))
	_, wait := p.watch()

	p.write(userFile, rules("", "written"))
	wait("written in place", denies("written"))

	p.write("home/.claude/settings.json.tmp", rules("", "renamed"))
	if err := os.Rename(p.path("home/.claude/settings.json.tmp"), p.path(userFile)); err != nil {
		t.Fatal(err)
	}
	wait("renamed over", denies("renamed"))

	p.write(userFile, "{")
	wait("broken", func(s *Settings) bool {
		return texts(s.Deny) == "renamed" && len(s.Warnings) == 1 && len(s.Broken) == 0
	})

	p.remove(userFile)
	wait("deleted", denies(""))

	p.remove("home/.claude")
	p.write(userFile, rules("", "anew"))
	wait("directory removed and made anew", denies("anew"))

	p.write(projectFile, rules("", "p"))
	wait("directory of the project appears", denies("p,anew"))

	p.write(ownUser, rules("", "own"))
	wait("a tree of directories appears", denies("p,own,anew"))

	p.write(dropInA, rules("", "m"))
	wait("a drop-in and its directory appear", denies("m,p,own,anew"))
	p.remove(dropInA)
	wait("the drop-in is deleted", denies("p,own,anew"))

	p.write(projectFile, rules("a", "p"))
	wait("a project allow", func(s *Settings) bool { return !s.Trusted && texts(s.Allow) == "" })
	if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	wait("trusted", func(s *Settings) bool { return s.Trusted && texts(s.Allow) == "a" })
}

// Calls of Reload that come together share a look, but never one that began before the edit they come after.
func TestReloadTogetherSeesEachEdit(t *testing.T) {
	p := newPlace(t)
	w, _ := p.watch()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.Reload()
				}
			}
		})
	}
	for i := range 300 {
		want := fmt.Sprintf("%03d", i)
		p.write(userFile+".tmp", rules("", want))
		if err := os.Rename(p.path(userFile+".tmp"), p.path(userFile)); err != nil {
			t.Fatal(err)
		}
		if got := texts(w.Reload().Deny); got != want {
			t.Errorf("edit %s: got %s", want, got)
			break
		}
	}
	close(stop)
	wg.Wait()
}
