package atomicfile

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// Files that were replaced wait a moment to be closed, a few together: that is when the file system frees their blocks, and waits for
// the disk, which may be told of it (discard). A goroutine for each would wake a thread next to every small write.
const (
	closeAfter  = 3 * time.Millisecond
	maxWaiting  = 16      // files
	mostWaiting = 1 << 20 // bytes of one that waits
)

var deferredClose struct {
	mu     sync.Mutex
	files  []*os.File // that wait
	under  int        // how many are being closed
	closed int        // how many were

	sparing []sparing // directories in which spares are made then
}

// closeSoon has the files that wait closed in a moment. The caller holds the lock, and has added something.
func closeSoon() {
	if len(deferredClose.files)+len(deferredClose.sparing) == 1 {
		time.AfterFunc(closeAfter, closeDue)
	}
}

// closeDue closes the files that wait, and makes spares.
func closeDue() {
	deferredClose.mu.Lock()
	files, all := takeWaiting(), deferredClose.sparing
	deferredClose.sparing = nil
	deferredClose.mu.Unlock()
	closeAll(files...)
	makeSpares(all)
}

// closedSome is signalled when files were closed.
var closedSome = sync.NewCond(&deferredClose.mu)

// closeLater closes a file that was only read. On Windows an open file is in the way of the next replacement.
func closeLater(f *os.File, size int64) {
	deferredClose.mu.Lock()
	defer deferredClose.mu.Unlock()
	if size > mostWaiting || len(deferredClose.files) >= maxWaiting || runtime.GOOS == "windows" {
		deferredClose.under++
		go closeAll(f)
		return
	}
	deferredClose.files = append(deferredClose.files, f)
	closeSoon()
}

// closeWaiting closes the files that wait.
func closeWaiting() {
	deferredClose.mu.Lock()
	files := takeWaiting()
	deferredClose.mu.Unlock()
	closeAll(files...)
}

// takeWaiting returns the files that wait, which count as being closed from then on. The caller holds the lock.
func takeWaiting() []*os.File {
	files := deferredClose.files
	deferredClose.files = nil
	deferredClose.under += len(files)
	return files
}

// closeAll closes files that count as being closed.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
	deferredClose.mu.Lock()
	defer deferredClose.mu.Unlock()
	deferredClose.under -= len(files)
	deferredClose.closed += len(files)
	closedSome.Broadcast()
}

// closedSoFar is how many files were closed.
func closedSoFar() int {
	deferredClose.mu.Lock()
	defer deferredClose.mu.Unlock()
	return deferredClose.closed
}

// roomSince closes all files that were replaced, and reports whether any were closed since so many had been.
func roomSince(closed int) bool {
	closeWaiting()
	deferredClose.mu.Lock()
	defer deferredClose.mu.Unlock()
	for deferredClose.under > 0 {
		closedSome.Wait()
	}
	return deferredClose.closed > closed
}
