package settle

import (
	"errors"
	"io"
	"os"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// rewrite handles a file that has several names and into which a command has written. The other names, which may lie
// elsewhere, show the new content too. rewrite copies what the command wrote to a slot and writes the former content
// back into the file, which keeps all its names. A copy of what the command wrote stands at the name until it is
// held.
func (p *place) rewrite(h *held, c *change) error {
	was := p.rec.Files[c.rel]
	return inDir(p.path(c.rel), func(f side) error {
		aside := side{f.dir, copyPrefix + h.Slot}
		_ = aside.dir.Remove(aside.name)
		if err := copyAs(f.dir, f.name, aside.dir, aside.name); err != nil {
			return err
		}
		if err := writeInto(f, p.store.slots, was); err != nil {
			return errors.Join(err, aside.dir.Remove(aside.name))
		}
		if err := take(f, side{p.store.slots, h.Slot}); err != nil {
			return err
		}
		if err := renameIn(aside, f.name); err != nil {
			return err
		}
		info, err := f.dir.Lstat(f.name)
		if err == nil {
			c.st = stampOf(info)
		}
		return err
	})
}

// writeInto replaces the content of a file by that of a copy. The names of the file stay.
func writeInto(f side, copies *os.Root, was file) error {
	in, err := copies.OpenFile(was.Copy, os.O_RDONLY|privatefile.NoFollow, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := f.dir.OpenFile(f.name, os.O_WRONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Truncate(info.Size()), out.Chmod(info.Mode().Perm()), out.Close())
	if err != nil {
		return err
	}
	return f.dir.Chtimes(f.name, info.ModTime(), info.ModTime())
}
