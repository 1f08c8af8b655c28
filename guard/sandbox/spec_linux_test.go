package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for backend, s := range available(t, f) {
		for _, c := range []struct {
			script string
			want   Status
		}{
			{"exit 0", Status{}},
			{"exit 7", Status{ExitCode: 7}},
			{"kill -9 $$", Status{137, "SIGKILL"}},
			{"kill -TERM $$", Status{143, "SIGTERM"}},
			{"kill -PIPE $$", Status{141, "SIGPIPE"}},
		} {
			if r := runIn(t, s, f.ws, f.env, "/bin/sh", "-c", c.script); r.status != c.want {
				t.Errorf("%s: %q: got %+v, want %+v; it says %q", backend, c.script, r.status, c.want, r.output)
			}
		}
		for what, spec := range map[string]Spec{
			"no such program":       {Argv: []string{"/no/such/program"}},
			"not in PATH":           {Argv: []string{"no-such-program"}, Env: f.env},
			"no directory":          {Argv: []string{"/bin/true"}, Dir: "/no/such/dir"},
			"denied directory":      {Argv: []string{"/bin/true"}, Dir: f.out + "/private"},
			"file as the directory": {Argv: []string{"/bin/true"}, Dir: f.ws + "/go.mod"},
			"nothing":               {},
			"NUL":                   {Argv: []string{"/bin/true", "a\x00b"}},
		} {
			if p, err := s.Spawn(spec); err == nil {
				p.Kill()
				t.Errorf("%s: %s: started", backend, what)
			} else {
				t.Logf("%s: %s: %v", backend, what, err)
			}
		}
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for backend, s := range available(t, f) {
		d := duration()
		p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", "sleep " + d + " | sleep " + d}})
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the pipeline", func() bool { return sleepers(t, d) == 2 })
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		st, err := p.Wait()
		if err != nil || st.Signal != "SIGTERM" && st.ExitCode != 143 {
			t.Errorf("%s: got %+v, %v", backend, st, err)
		}
		waitFor(t, "the pipeline to end", func() bool { return sleepers(t, d) == 0 })
		p.Kill()
	}
}

// Descriptors beyond the standard ones, long messages, and bytes that are not
// text arrive as they were sent.
func TestSpecArrives(t *testing.T) {
	f := newFixture(t)
	for backend, s := range available(t, f) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", 100<<10)
		env := append(f.env, "ODD=a\xff\nb", "LONG="+long, "LONG2="+long)
		p, err := s.Spawn(Spec{
			Argv: []string{"/bin/bash", "-c", `printf '%s|%s|%s|%s' "${#LONG}" "${#LONG2}" "$ODD" "$1" >&4; pwd -P >&4; cat <&3 >&4; ls /proc/self/fd | wc -l >&4`, "x", "\xfe'\n"},
			Dir:  f.ws, Env: env, Files: []*os.File{nil, nil, nil, nil, w},
		})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.ReadFrom(r)
		r.Close()
		p.Wait()
		p.Kill()
		if got, want := b.String(), fmt.Sprintf("%d|%d|a\xff\nb|\xfe'\n%s\n6\n", len(long), len(long),
			f.ws); got != want {
			t.Errorf("%s: got %q, want %q", backend, got, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		policy Policy
		want   string
	}{
		"relative":       {Policy{Writable: []string{"x"}}, "not absolute"},
		"root":           {Policy{Writable: []string{"/"}}, "root of the file system"},
		"root by link":   {Policy{Writable: []string{"/proc/self/root"}}, "root of the file system"},
		"denied root":    {Policy{Denied: []string{"//"}}, "root of the file system"},
		"missing":        {Policy{Writable: []string{dir + "/no"}}, "does not exist"},
		"proc":           {Policy{Writable: []string{"/proc/sys"}}, "of its own"},
		"dev":            {Policy{Writable: []string{"/dev/shm"}}, "of its own"},
		"NUL":            {Policy{Denied: []string{"/a\x00b"}}, "NUL"},
		"domain":         {Policy{Network: Network{AllowedDomains: []string{"http://x"}}}, "not a URL"},
		"denied domain":  {Policy{Network: Network{DeniedDomains: []string{"a.*"}}}, "wildcard"},
		"canceled start": {Policy{}, "canceled"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if name == "canceled start" {
			cancel()
		}
		s, err := Start(ctx, c.policy, Options{})
		cancel()
		if err == nil {
			s.Close()
			t.Errorf("%s: started", name)
		} else if !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A link that leads to itself names nothing, whichever list it is in.
func TestPolicyLinksInACircle(t *testing.T) {
	f := newFixture(t)
	loop := f.ws + "/loop"
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	p := f.policy()
	p.ReadOnly, p.Denied, p.Masked = append(p.ReadOnly, loop), append(p.Denied, loop+"/x"), append(p.Masked, loop)
	s, err := Start(context.Background(), p, Options{})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c",
		"echo made > new && cat new"); !strings.Contains(r.output, "made") {
		t.Errorf("got %q", r.output)
	}
}

// TestFilesBlock gives a command pipes of package os, which do not block: many programs take a pause of such an input for its
// end, as a hook in perl that then refused nothing.
func TestFilesBlock(t *testing.T) {
	f := newFixture(t)
	for backend, s := range available(t, f) {
		in, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		out, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Spawn(Spec{Argv: []string{"/bin/sh", "-c", "cat /proc/self/fdinfo/0 /proc/self/fdinfo/1"},
			Files: []*os.File{in, w, w}})
		in.Close()
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		told, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		hold.Close()
		out.Close()
		p.Kill()
		var found int
		for line := range strings.Lines(string(told)) {
			var flags int
			if n, _ := fmt.Sscanf(line, "flags: %o", &flags); n == 1 {
				found++
				if flags&syscall.O_NONBLOCK != 0 {
					t.Errorf("%s: a file does not block: flags %o", backend, flags)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s: the flags of %d files are told, want 2: %q", backend, found, told)
		}
	}
}
