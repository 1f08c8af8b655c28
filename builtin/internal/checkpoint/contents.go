package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// source is where a content is kept: in a pack file of git, or as a copy. The zero source is none.
type source struct {
	pack *pack
	off  int64
	copy *copied
}

// copied is a content in the file of copies.
type copied struct {
	sum       Sum
	off, size int64
	refs      int
}

// contents keeps the contents of files. Copies are in one file.
type contents struct {
	max     int64
	hasRoom func(size int64) error
	used    *atomic.Int64 // bytes of all copies that max bounds
	packs   *packs
	scratch []byte // of the one goroutine that reads files

	mu     sync.Mutex
	file   *os.File
	end    int64 // of the file
	bytes  int64 // of the copies
	copies map[Sum]*copied
}

func newContents(cfg Config) (*contents, error) {
	f, err := os.OpenFile(filepath.Join(cfg.Dir, contentsName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the history of commands has no place for copies: %w", err)
	}
	used := cfg.Used
	if used == nil {
		used = new(atomic.Int64)
	}
	return &contents{max: cfg.MaxBytes, hasRoom: cfg.HasRoom, used: used, packs: openPacks(cfg.Root), file: f,
		copies: map[Sum]*copied{}}, nil
}

// openContents opens the copies of a killed process.
func openContents(cfg Config) (*contents, error) {
	f, err := os.OpenFile(filepath.Join(cfg.Dir, contentsName), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &contents{max: cfg.MaxBytes, hasRoom: cfg.HasRoom, used: new(atomic.Int64), packs: &packs{}, file: f,
		end: info.Size(), copies: map[Sum]*copied{}}, nil
}

// saved returns where a content is that a record of the log names.
func (c *contents) saved(s saved) source {
	switch {
	case s.Pack > 0 && s.Pack <= len(c.packs.all):
		return source{pack: c.packs.all[s.Pack-1], off: s.Off}
	case s.Copied:
		return source{copy: &copied{sum: s.State.Sum, off: s.Off, size: s.Size, refs: 1}}
	}
	return source{}
}

// keep keeps a content. The sum is valid even after an error.
func (c *contents) keep(content []byte) (Sum, source, error) {
	sum := Sum(sha256.Sum256(content))
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.copies[sum]; k != nil {
		k.refs++
		return sum, source{copy: k}, nil
	}
	if p, off, ok := c.packs.find(content); ok {
		return sum, source{pack: p, off: off}, nil
	}
	size := int64(len(content))
	if used := c.used.Load(); used+size > c.max {
		return sum, source{}, fmt.Errorf("the copies of workspaces take %d MiB already", used>>20)
	}
	if c.hasRoom != nil {
		if err := c.hasRoom(size); err != nil {
			return sum, source{}, err
		}
	}
	if _, err := c.file.WriteAt(content, c.end); err != nil {
		return sum, source{}, fmt.Errorf("it could not be copied: %w", err)
	}
	k := &copied{sum: sum, off: c.end, size: size, refs: 1}
	c.end += size
	c.bytes += size
	c.used.Add(size)
	c.copies[sum] = k
	return sum, source{copy: k}, nil
}

func (c *contents) retain(s source) {
	if s.copy == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.copy.refs++
}

// release releases a content. The last reference frees its room on the disk.
func (c *contents) release(s source) {
	k := s.copy
	if k == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.refs--; k.refs > 0 || c.copies[k.sum] != k {
		return
	}
	delete(c.copies, k.sum)
	c.bytes -= k.size
	c.used.Add(-k.size)
	punch(c.file, k.off, k.size)
}

// read returns a content that is kept.
func (c *contents) read(s source, state State) ([]byte, error) {
	content, err := c.bytesOf(s)
	if err == nil && Sum(sha256.Sum256(content)) != state.Sum {
		err = errors.New("the content kept is damaged")
	}
	return content, err
}

func (c *contents) bytesOf(s source) ([]byte, error) {
	switch {
	case s.pack != nil:
		return s.pack.blob(s.off)
	case s.copy != nil:
		content := make([]byte, s.copy.size)
		_, err := c.file.ReadAt(content, s.copy.off)
		return content, err
	}
	return nil, errors.New("the content is not kept")
}

// reset removes all copies.
func (c *contents) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.copies)
	c.used.Add(-c.bytes)
	c.bytes = 0
	_ = c.file.Truncate(0)
	c.end = 0
}

func (c *contents) close() error {
	c.reset()
	c.packs.close()
	return errors.Join(c.file.Close(), os.Remove(c.file.Name()))
}
