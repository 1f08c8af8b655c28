package document

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is how long the interpreter may take before a second worker is started, which compiles PDFium.
const patience = 2 * time.Second

// race reads pages while no compiled PDFium is cached. A first worker interprets PDFium, which starts in a fraction
// of a second. If it takes longer than patience, a second worker compiles PDFium. race returns the pages of the
// worker that finishes first.
func (p *Pages) race(ctx context.Context, f *os.File, program string, o request) (*Pages, error) {
	type answer struct {
		pages *Pages
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	answers := make(chan answer, 2)
	read := func(o request) {
		pages := *p
		pages.Notes = slices.Clip(p.Notes)
		workers.Go(func() {
			err := pages.work(ctx, f, program, o)
			answers <- answer{&pages, err}
		})
	}
	quick := o
	quick.Interpret = true
	read(quick)
	select {
	case first := <-answers:
		return first.pages, first.err
	case <-time.After(patience):
	}
	read(o)
	first := <-answers
	if first.err != nil {
		if second := <-answers; second.err == nil {
			first = second
		}
	}
	return first.pages, first.err
}

// isCompiled reports whether a cache has a compiled PDFium, of any version. If it is of another version, the next
// reading takes the time to compile.
func isCompiled(cache string) bool {
	if cache == "" {
		return false
	}
	dirs, _ := os.ReadDir(cache)
	for _, dir := range dirs {
		files, _ := os.ReadDir(filepath.Join(cache, dir.Name()))
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), ".tmp") {
				return true
			}
		}
	}
	return false
}

// A Compiler compiles PDFium in the background for later readings, once. The zero Compiler is ready for use. A nil
// one does nothing.
type Compiler struct {
	mu      sync.Mutex
	started bool
	stop    context.CancelFunc
	worker  sync.WaitGroup
}

// start has PDFium compiled into the cache of a request.
func (c *Compiler) start(program string, o request) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return
	}
	c.started = true
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	cmd, err := workerCommand(ctx, program, request{Compile: true, CacheDir: o.CacheDir, Seconds: o.Seconds})
	if err != nil {
		return
	}
	if _, err := cmd.StdinPipe(); err != nil || cmd.Start() != nil { // the pipe ends the worker with this process
		return
	}
	c.worker.Go(func() { _ = cmd.Wait() }) // if it fails, the next reading has no compiled PDFium either
}

// Close ends a compilation that is under way, and starts none from now on.
func (c *Compiler) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	if c.stop != nil {
		c.stop()
	}
	c.worker.Wait()
}
