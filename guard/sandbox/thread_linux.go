package sandbox

import "runtime"

// A thread runs functions on one thread of the system: for the kernel a thread is what restricts itself, traces a
// process, and is the parent of a process (golang/go#27505).
type thread chan func()

func newThread() thread {
	t := make(thread)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the function
		for f := range t {
			f()
		}
	}()
	return t
}

// do runs f on the thread.
func (t thread) do(f func()) {
	done := make(chan struct{})
	t <- func() {
		defer close(done)
		f()
	}
	<-done
}
