package sandbox

import (
	"runtime"
	"sync"
)

// launcher is a thread that starts processes that must end with
// their parent: for the kernel the parent is the thread, not the process
// (golang/go#27505).
type launcher struct {
	requests chan func()
	once     sync.Once
}

func newLauncher() *launcher {
	l := &launcher{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range l.requests {
			f()
		}
	}()
	return l
}

// do runs f on the thread.
func (l *launcher) do(f func()) {
	done := make(chan struct{})
	l.requests <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (l *launcher) close() { l.once.Do(func() { close(l.requests) }) }
