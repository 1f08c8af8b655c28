package atomicfile

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// Files that were replaced wait a moment to be closed, a few together: that is when the file system frees their blocks, and waits for
// the disk, which may be told of it (discard). A goroutine for each would wake a thread beside every small write.
const (
	closeAfter  = 3 * time.Millisecond
	maxWaiting  = 16      // files
	mostWaiting = 1 << 20 // bytes of one that waits
)

var closing struct {
	mu     sync.Mutex
	files  []*os.File // that wait
	under  int        // how many are being closed
	closed int        // how many were

	sparing []sparing // directories in which spares are made then
}

// closeSoon has the files that wait closed in a moment. The caller holds the lock, and has added something.
func closeSoon() {
	if len(closing.files)+len(closing.sparing) == 1 {
		time.AfterFunc(closeAfter, closeDue)
	}
}

// closeDue closes the files that wait, and makes spares.
func closeDue() {
	closing.mu.Lock()
	files, all := takeWaiting(), closing.sparing
	closing.sparing = nil
	closing.mu.Unlock()
	closeAll(files...)
	makeSpares(all)
}

// closedSome is signalled when files were closed.
var closedSome = sync.NewCond(&closing.mu)

// closeLater closes a file that was only read. On Windows an open file is in the way of the next who replaces it.
func closeLater(f *os.File, size int64) {
	closing.mu.Lock()
	defer closing.mu.Unlock()
	if size > mostWaiting || len(closing.files) >= maxWaiting || runtime.GOOS == "windows" {
		closing.under++
		go closeAll(f)
		return
	}
	closing.files = append(closing.files, f)
	closeSoon()
}

// closeWaiting closes the files that wait.
func closeWaiting() {
	closing.mu.Lock()
	files := takeWaiting()
	closing.mu.Unlock()
	closeAll(files...)
}

// takeWaiting returns the files that wait, which count as being closed from then on. The caller holds the lock.
func takeWaiting() []*os.File {
	files := closing.files
	closing.files = nil
	closing.under += len(files)
	return files
}

// closeAll closes files that count as being closed.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
	closing.mu.Lock()
	defer closing.mu.Unlock()
	closing.under -= len(files)
	closing.closed += len(files)
	closedSome.Broadcast()
}

// closedSoFar is how many files were closed.
func closedSoFar() int {
	closing.mu.Lock()
	defer closing.mu.Unlock()
	return closing.closed
}

// roomSince closes all files that were replaced, and reports whether any were closed since so many had been.
func roomSince(closed int) bool {
	closeWaiting()
	closing.mu.Lock()
	defer closing.mu.Unlock()
	for closing.under > 0 {
		closedSome.Wait()
	}
	return closing.closed > closed
}
