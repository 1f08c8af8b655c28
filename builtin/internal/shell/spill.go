package shell

import (
	"fmt"
	"io"
)

// A spill stores a whole output, up to a limit, once it has begun.
type spill struct {
	open      Spill
	max, left int64
	w         io.WriteCloser
	path      string
	full      bool
	err       error
	begun     bool
}

// begin opens the spill and writes the output so far. Only the first call has an effect.
func (s *spill) begin(parts ...[]byte) {
	if s.begun || s.open == nil {
		return
	}
	s.begun = true
	w, path, err := s.open()
	if err != nil {
		s.err = fmt.Errorf("the whole output could not be kept: %w", err)
		return
	}
	s.w, s.path = w, path
	for _, p := range parts {
		s.write(p)
	}
}

// write writes if the spill has begun and is neither full nor broken.
func (s *spill) write(p []byte) {
	if s.w == nil || s.full || s.err != nil {
		return
	}
	n := min(s.left, int64(len(p)))
	written, err := s.w.Write(p[:n])
	s.left -= int64(written)
	if err != nil {
		s.fail(err)
		return
	}
	if n < int64(len(p)) {
		s.cut()
	}
}

// cut ends the spill early and says so in it.
func (s *spill) cut() {
	if s.w == nil || s.full || s.err != nil {
		return
	}
	s.full = true
	if _, err := fmt.Fprintf(s.w, "\n… the output went on; only its first %s bytes are kept …\n",
		grouped(s.max-s.left)); err != nil {
		s.fail(err)
	}
}

func (s *spill) fail(err error) {
	s.err = fmt.Errorf("the whole output could not be kept, only its first %s bytes: %w", grouped(s.max-s.left), err)
}

// cutShort reports whether the spill holds only the beginning.
func (s *spill) cutShort() bool { return s.full || s.w != nil && s.err != nil }

func (s *spill) close() {
	if s.w == nil {
		return
	}
	if err := s.w.Close(); err != nil && s.err == nil {
		s.fail(err)
	}
}
