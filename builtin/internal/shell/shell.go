package shell

import (
	"errors"
	"os"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// reportMax is the most that is read of a report: PATH_MAX is 4,096, and the shell
// may add a message.
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
	rawPipe *rawPipe          // as long as it is set, what follows is not watched, and both are nil
	script  *os.File          // our end, over which the last word comes back
	pipe    *outputReader     // read end of standard output and error
	dir     *os.File          // read end of the report
	execs   *sandbox.ExecGate // nil: programs are not judged
	hosts   *sandbox.HostGate

	out      *Collector
	buf      []byte        // takes output
	eof      chan struct{} // closed when no more output is read
	lastWord chan struct{} // closed when the shell has said its last word, or ended; nil if it makes no difference

	listening bool // what it writes is taken as it comes

	fast      int       // bytes of output
	fastSince time.Time // since then

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
	s := &shell{hosts: sandbox.NewHostGate(), out: NewCollector(cfg.Limits, cfg.Spill), buf: make([]byte, readMin), eof: make(chan struct{}), pipe: &outputReader{}}
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
		s.execs = sandbox.NewExecGate()
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

// listen takes what the shell will write, until it is closed, and waits for its last
// word unless that has been heard. Only the first call does anything.
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

// collect reads the output until its end; or until the read deadline is set, and
// then what is there.
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

// floodSize in floodTime is a flood, in bytes.
const (
	floodSize = 1 << 20
	floodTime = 10 * time.Millisecond
)

// floods reports whether output comes that fast, with the n bytes that came just now.
func (s *shell) floods(n int) bool {
	if s.fast += n; s.fast < floodSize {
		return false
	}
	now := time.Now()
	took := now.Sub(s.fastSince)
	s.fast, s.fastSince = 0, now
	return took < floodTime
}

// take takes output that was read into the buffer, which grows with what comes.
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

// send hands the shell its directory and script. The shell runs nothing before it
// has read all of it.
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

// conclude ends a shell that has said its last word if nothing is left of its
// command, and reports whether that is so, and whether the command left anything
// open in it. Else the shell continues.
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

// finishScript ends the script of a shell that has reported, or is about to, so that the shell continues without us.
func (s *shell) finishScript() {
	if _, ok := s.proc.(supervise.Finisher); ok {
		endOfScript(s.script)
	}
}

// status tells how the shell ended, as far as that is known already.
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

// discard ends a shell that is not needed any more.
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
