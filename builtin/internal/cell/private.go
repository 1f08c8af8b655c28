package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"toolhost/guard/privatedir"
	"toolhost/guard/sandbox"
)

// private brings the caller's private directories up to date, for a sandbox that is about to start.
func (c *Cell) private() ([]sandbox.Private, error) {
	var list []sandbox.Private
	for _, place := range c.policy.Private() {
		if _, _, err := place.Sync(c.view()); err != nil {
			return nil, fmt.Errorf("the private %s: %w", place.Name(), err)
		}
		list = append(list, mounted(place))
	}
	return list, nil
}

// show lets commands see what has appeared in the directories of the host that they have their own of.
func (c *Cell) show() error {
	for _, place := range c.policy.Private() {
		fresh, changed, err := place.Sync(c.view())
		if err == nil && changed {
			err = c.box.Show(mounted(place), fresh...)
			c.refresh()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mounted(p *privatedir.Place) sandbox.Private {
	return sandbox.Private{Name: p.Name(), Dir: p.Dir(), Shown: p.Shown()}
}

// view says what commands see of the host in private directories: first what they work with.
func (c *Cell) view() privatedir.View {
	needed := slices.Concat(c.paths.Writable, c.paths.Shown, c.policy.Roots(), filepath.SplitList(os.Getenv("PATH")))
	if home, err := os.UserHomeDir(); err == nil {
		needed = append(needed, home)
	}
	return privatedir.View{Needed: needed, Hidden: c.policy.Withheld}
}
