package shell

import (
	"bytes"
	"io"
)

// Defaults of [Limits].
const (
	DefaultHead     = 12 << 10 // bytes of output kept from the start
	DefaultTail     = 16 << 10 // bytes of output kept from the end: errors come last
	DefaultSpillMax = 64 << 20 // bytes of output kept in the spill
)

// Limits say in bytes how much of an output is kept.
type Limits struct {
	Head, Tail int   // of the cleaned text
	SpillMax   int64 // of the whole in its spill
}

// A Spill opens a file for the whole output of one command, and returns its path.
type Spill func() (io.WriteCloser, string, error)

// Shown is the shown part of an output.
type Shown struct {
	// Text is the cleaned output, standard output and standard error in the
	// order written. If it was longer than head and tail together, the middle is
	// replaced by a line that says how much is missing.
	Text  string
	Bytes int64 // of the output as it was written
	Lines int   // newlines in the output as it was written
	Cut   bool  // Text is not the whole
	ends  ends  // of an output that is cut

	Spilled string // path of the whole output, or "" if there is none
	// SpillCut says that Spilled holds only the beginning, because the output was longer than a spill may be (the file
	// says so) or because of SpillErr.
	SpillCut bool
	SpillErr error // why Spilled is missing or incomplete
}

// Shorten cuts a text that is not the whole output to about n bytes. It does not cut a whole output, which is not
// saved.
func (s *Shown) Shorten(n int) {
	if s.Cut && len(s.Text) > n && n > 0 {
		s.ends = s.ends.shorter(n)
		s.Text = s.ends.text()
	}
}

// Next returns the number of the first line that is not shown whole in a cut text.
func (s *Shown) Next() int { return 1 + bytes.Count(s.ends.head, []byte{'\n'}) }

// Inside returns the offset of the gap in a cut text if the gap starts inside a line, of which more than the given
// number of bytes are shown. Otherwise it returns 0.
func (s *Shown) Inside(shown int) int {
	if s.Cut && len(s.ends.head)-1-bytes.LastIndexByte(s.ends.head, '\n') > shown {
		return len(s.ends.head)
	}
	return 0
}
