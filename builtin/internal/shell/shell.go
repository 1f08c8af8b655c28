package shell

import (
	"errors"
	"os"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// reportMax is how many bytes of a report are read at most: PATH_MAX is 4,096, and the shell may add a message.
const reportMax = 8 << 10

// sendTimeout bounds handing over a script. Bash reads 1 MB in about 15 ms; only
// a shell that was stopped (SIGSTOP) takes longer.
const sendTimeout = 10 * time.Second

// readMin and readMax bound how much output is read at once, in bytes. A command
// that says little must not cost much, since hundreds may wait in the
// background; for one that floods, less than readMax costs a quarter of the
// throughput and more gains nothing.
const (
	readMin = 1 << 10
	readMax = 256 << 10
)

// restMax bounds what is read without waiting for more, in bytes. Pipes hold less,
// unless a process keeps writing.
const restMax = 8 * readMax

// A shell is a started bash that waits for its script, and then runs it.
type shell struct {
	proc    supervise.Process
	rawPipe *rawPipe       // while it is set, script and the file of pipe are nil
	script  *os.File       // our end, from which the last word is read
	pipe    *outputReader  // read end of standard output and error
	dir     *os.File       // read end of the report
	execs   *execgate.Gate // nil: programs are not judged
	hosts   *connectgate.Gate

	out      *Collector
	buf      []byte        // takes output
	eof      chan struct{} // closed when no more output is read
	lastWord chan struct{} // closed after the shell's last word, or its end; nil if it is not waited for

	listening bool // a goroutine reads the output

	fast      int // bytes of output since fastSince
	fastSince time.Time

	said []byte // what has been read of the report
}

// startShell starts a bash that waits for its script. It waits in /, so as not to
// hold a directory that a command may want to remove.
func startShell(cfg Config, bash string, env []string) (*shell, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s := &shell{hosts: connectgate.New(), out: NewCollector(cfg.Limits), buf: make([]byte, readMin),
		eof: make(chan struct{}), pipe: &outputReader{}}
	script, out, err := s.open()
	if err != nil {
		s.close()
		return nil, err
	}
	var dir *os.File
	defer func() { closeAll(script, out, dir) }()
	if s.dir, dir, err = unwatchedPipe(); err != nil {
		s.close()
		return nil, err
	}
	if cfg.Execs {
		s.execs = execgate.New()
	}
	s.proc, err = cfg.Start(supervise.Spec{
		Argv:  []string{bash, "--noprofile", "--norc", "-c", wrapper, "bash"},
		Dir:   rootDir,
		Env:   env,
		Files: childFiles(null, out, script, dir),
		Execs: s.execs,
		Hosts: s.hosts,
	})
	if err != nil {
		s.close()
		return nil, err
	}
	if _, ok := s.proc.(supervise.Finisher); !ok {
		s.listen(false)
	}
	return s, nil
}

// listen starts to read what the shell writes, and unless heard is set, to wait for its last word. Only the first
// call does anything.
func (s *shell) listen(heard bool) {
	if s.listening {
		return
	}
	s.listening = true
	if s.rawPipe != nil {
		s.script, s.pipe.file = s.rawPipe.watched()
		s.rawPipe = nil
	}
	go s.collect()
	if _, ok := s.proc.(supervise.Finisher); ok && !heard {
		said := make(chan struct{})
		s.lastWord = said
		go func() {
			defer close(said)
			s.script.Read(make([]byte, 1))
		}()
	}
}

// collect reads the output until its end, or until the deadline for reading; then it reads only what is there.
func (s *shell) collect() {
	defer close(s.eof)
	for {
		n, err := s.pipe.read(s.buf)
		s.take(n)
		if err == nil {
			if s.floods(n) {
				s.drainOutput()
			}
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			for rest := restMax; rest > 0; rest -= n {
				if n = s.pipe.readNow(s.buf); n == 0 {
					return
				}
				s.take(n)
			}
		}
		return
	}
}

// Output is a flood if floodSize bytes come within floodTime.
const (
	floodSize = 1 << 20
	floodTime = 10 * time.Millisecond
)

// floods counts n bytes that have just been read, and reports whether the output is a flood.
func (s *shell) floods(n int) bool {
	if s.fast += n; s.fast < floodSize {
		return false
	}
	now := time.Now()
	took := now.Sub(s.fastSince)
	s.fast, s.fastSince = 0, now
	return took < floodTime
}

// take passes on n bytes that were read into the buffer. If they fill the buffer, it makes the buffer larger.
func (s *shell) take(n int) {
	s.out.Write(s.buf[:n])
	if n == len(s.buf) && n < readMax {
		s.buf = make([]byte, 4*n)
	}
}

// closeAll closes the files that are not nil; closing one twice does no harm.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// waiting reports whether the shell still waits for its script.
func (s *shell) waiting() bool {
	select {
	case <-s.proc.Done():
		return false
	default:
		return true
	}
}

// send hands the shell its directory and script. The shell runs nothing before it has read the whole message.
func (s *shell) send(dir, text string) error {
	rest := message(dir, text)
	if s.rawPipe != nil {
		n, err := s.rawPipe.write(rest)
		if rest = rest[n:]; err != nil || rest == "" {
			return err
		}
		s.listen(false)
	}
	s.script.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err := s.script.WriteString(rest)
	if _, ok := s.proc.(supervise.Finisher); !ok {
		err = errors.Join(err, endOfScript(s.script))
	}
	return err
}

// conclude ends a shell that has said its last word, if nothing of its command is left, and reports whether it did.
// open says that the command left files open in the shell. If conclude did not end the shell, the shell continues.
func (s *shell) conclude() (open, ok bool) {
	if p, can := s.proc.(supervise.Finisher); can && s.report().over {
		if files, ok := p.TryFinish(); ok {
			return files != plainFiles, true
		}
	}
	s.listen(true)
	s.finishScript()
	return false, false
}

// finishScript ends the script of a shell that has reported, or is about to. The shell then continues to its end by
// itself.
func (s *shell) finishScript() {
	if _, ok := s.proc.(supervise.Finisher); ok {
		endOfScript(s.script)
	}
}

// status returns how the shell ended, so far as that is known.
func (s *shell) status() (supervise.Status, error) {
	if s.waiting() {
		return supervise.Status{ExitCode: 128 + 9, Signal: "SIGKILL"}, nil
	}
	return s.proc.Wait()
}

// report returns what the shell has reported so far. A process that could not be
// killed may still hold the descriptor, so only what is there is read.
func (s *shell) report() finalDir {
	buf := make([]byte, reportMax)
	s.said = append(s.said, buf[:readNow(s.dir, buf)]...)
	return parseReport(string(s.said))
}

// discard ends a shell that is no longer needed.
func (s *shell) discard() error {
	_, err := s.proc.Kill()
	s.close()
	return err
}

// close closes the runner's ends of the pipes.
func (s *shell) close() {
	closeAll(s.script, s.dir)
	s.pipe.close()
	if s.hosts != nil { // nil in tests of its parts
		s.hosts.Close()
	}
	if s.execs != nil {
		s.execs.Close()
	}
	if s.rawPipe != nil {
		s.rawPipe.close()
		s.rawPipe = nil
	}
}
