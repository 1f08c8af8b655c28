package shell

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A flood is taken without the runtime being woken for it, and what follows as before.
func TestSwallow(t *testing.T) {
	text := strings.Repeat("a line\n", 5000)
	if r, w, err := os.Pipe(); err == nil { // the runtime opens its poller with the first pipe
		r.Close()
		w.Close()
	}
	for name, c := range map[string]struct {
		then func(s *shell, w *os.File) // before the flood is swallowed
		want error                      // of the next read
	}{
		"the writer ends":        {func(_ *shell, w *os.File) { w.Close() }, io.EOF},
		"it becomes quiet":       {func(*shell, *os.File) {}, nil},
		"nobody waits for it":    {func(s *shell, _ *os.File) { s.pipe.until(time.Now()) }, os.ErrDeadlineExceeded},
		"the shell is discarded": {func(s *shell, _ *os.File) { s.close() }, os.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			before := openFiles(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			s := &shell{out: NewCollector(Limits{Head: 10, Tail: 10}), buf: make([]byte, readMin),
				pipe: &outputReader{file: r}}
			if _, err := w.WriteString(text); err != nil {
				t.Fatal(err)
			}
			fd, ok := s.pipe.unwatch()
			if !ok {
				t.Fatal("the pipe cannot be left unwatched")
			}
			c.then(s, w) // as if it happened meanwhile
			s.pipe.watch(fd)
			s.drainOutput()
			if c.want == nil || c.want == io.EOF {
				if got := s.out.Size(); got != int64(len(text)) {
					t.Errorf("took %d bytes, want %d", got, len(text))
				}
			}
			if c.want == nil {
				w.WriteString("more\n")
			}
			if n, err := s.pipe.read(s.buf); !errors.Is(err, c.want) || err == nil && string(s.buf[:n]) != "more\n" {
				t.Errorf("the next read: %q, %v, want %v", s.buf[:n], err, c.want)
			}
			w.Close()
			s.close()
			if after := openFiles(t); after != before {
				t.Errorf("%d descriptors are open, %d before", after, before)
			}
		})
	}
}

// What is said before, between and after floods arrives.
func TestFloods(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	r := newRunner(t, Config{InheritPath: true})
	res, err := r.Run(t.Context(), Command{Text: "echo first; for i in 1 2 3; do head -c 20000000 /dev/zero; sleep 0.01; echo; done; echo last", Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(len("first\n") + 3*20000001 + len("last\n")); res.Bytes != want || res.Lines != 5 {
		t.Errorf("%d bytes and %d lines, want %d and 5", res.Bytes, res.Lines, want)
	}
	if !strings.HasPrefix(res.Text, "first\n") || !strings.HasSuffix(res.Text, "\nlast\n") {
		t.Errorf("the text is %.100q", res.Text)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
