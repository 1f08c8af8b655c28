package kernel

import "runtime"

// A Thread runs functions on one thread of the system: for the kernel a thread is what restricts itself, traces a
// process, and is the parent of a process (golang/go#27505).
type Thread chan func()

// NewThread starts a thread. It ends when the channel is closed.
func NewThread() Thread {
	t := make(Thread)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the function
		for f := range t {
			f()
		}
	}()
	return t
}

// Do runs f on the thread.
func (t Thread) Do(f func()) {
	done := make(chan struct{})
	t <- func() {
		defer close(done)
		f()
	}
	<-done
}
