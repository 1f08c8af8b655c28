package execgate

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits for reading a program's arguments. The kernel takes 2 MiB and more; no rule matches that much.
const (
	maxArgs  = 64 << 10 // bytes
	maxWords = 4096     // arguments
)

// An Exec is an attempt of a command's process to start a program. It is valid until the judge returns.
type Exec struct {
	// Path is the program as the process named it. A relative path is made absolute in the working directory that the
	// process sees. A program that is named by a descriptor alone is /dev/fd/N, as the kernel names it.
	Path string
	// Files are what the kernel would load, in order: the named file, each file that a `#!` line names, and the program
	// that the dynamic loader would load if the last of these is the dynamic loader.
	Files []File
	// Args are the arguments, the program's name first. There may be none.
	Args []string
	// Cut says that Args is not complete: at most 4,096 words and 64 KiB are read.
	Cut bool
	// Dir is the working directory of the process.
	Dir string
	// Open opens a file by its name as the process sees it, such as a script that an interpreter is given; the caller
	// closes its handle. If Open is nil, nothing can be opened.
	Open func(name string) (File, error)
	// Thread is the number of the thread that waits, as the host sees it.
	Thread int
	// Asker returns more about the process. It reads files in /proc: call it only where needed.
	Asker func() Asker
	// Unreadable, if not nil, says why the process or the program cannot be examined. The exec is refused whatever
	// the judge answers; the judge is called to record it. Fields that were read before are set; Args may be empty.
	Unreadable error
}

// An Asker is the process that tries to start a program.
type Asker struct {
	// Process is its number, as the host sees it.
	Process int
	// Started is when the process was started, in clock ticks since boot. The number may belong to another process
	// later.
	Started uint64
	// Chain is the base names of the programs from the call's own shell, which is left out, down to the process.
	// Equal names in a row are kept once: most processes that have the name of their parent are forks of it.
	Chain []string
}

// A File is a file of an [Exec].
type File struct {
	// Name is the path of the file with links resolved, as its process sees it; "" if it has none.
	Name string
	// Handle reads the file until the judge returns. It is nil if this process may not read the file.
	Handle *os.File
	// Dev, Inode, Size and Ctime are those of stat(2).
	Dev, Inode uint64
	Size       int64
	Ctime      time.Time
	// Unlinked says that no directory has the file, such as one in memory (memfd_create) or a removed one.
	Unlinked bool
}

// A Verdict is the answer to an [Exec]. The zero value refuses: the process gets EACCES and continues.
type Verdict struct {
	// Allow starts the program.
	Allow bool
	// Confirm compares program and arguments again after the kernel has taken them over, before the first instruction
	// runs: another thread may have changed them since they were judged. If they differ, the process is killed. A
	// process that has a tracer cannot be compared, and is refused.
	Confirm bool
	// Failed, if not nil, is called if Confirm led to a refusal or killed the process.
	Failed func(why string)
}

// A Judge decides whether a program may start. It is also called for a file without execute permission: the
// process gets EACCES whatever the judge says. Several attempts may be judged concurrently. The judge may take its
// time: only the process waits. ctx ends when the process no longer waits, or the gate is closed.
type Judge func(ctx context.Context, e *Exec) Verdict

// A Gate holds the judge of one command; Execs of a sandbox.Spec names it. A shell may be started before its call is
// known: until [Gate.Judge] is called every program but the shell is refused.
type Gate struct {
	ctx context.Context
	end context.CancelFunc

	mu            sync.Mutex
	judge         Judge
	shell, parent int // process numbers of the command's shell and of its parent, as the host sees them
}

// New returns a gate without a judge.
func New() *Gate {
	g := &Gate{}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Judge sets the judge of the programs that the command starts from now on.
func (g *Gate) Judge(j Judge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judge = j
}

// Close ends all waiting for the judge. From now on every program is refused.
func (g *Gate) Close() {
	g.Judge(nil)
	g.end()
}

// loaderOptions are the options of dynamic loaders that take a value, after "=" or in the next argument.
var loaderOptions = []string{
	"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask",
}

// LoaderOperand returns the program that a dynamic loader with these arguments loads, and the arguments of that
// program; "" if there is none. The first argument of the program may differ from the name of its file.
func LoaderOperand(argv []string) (program string, args []string) {
	called := ""
	for i := 1; i < len(argv); i++ {
		option, value, attached := strings.Cut(argv[i], "=")
		switch {
		case argv[i] == "--":
			i++
			fallthrough
		case !strings.HasPrefix(argv[i], "--"):
			if i >= len(argv) {
				return "", nil
			}
			return argv[i], append([]string{cmp.Or(called, argv[i])}, argv[i+1:]...)
		case slices.Contains(loaderOptions, option):
			if !attached && i+1 < len(argv) {
				i++
				value = argv[i]
			}
			if option == "--argv0" {
				called = value
			}
		}
	}
	return "", nil
}
