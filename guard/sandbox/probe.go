package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// Probe determines by trying what this machine can contain: it starts a sandbox of each backend, best first, and
// attacks it from inside, until one withstands everything. The report is about the one that withstood most; Why
// describes the faults of the better ones. It takes about 20 ms if namespaces work. A trial that withstood everything
// is valid for an hour. The backend of macOS is tried only if seatbelt is set.
func Probe(ctx context.Context, seatbelt bool) Report {
	if r, known := recalled(); known {
		return r
	}
	backends := platformBackends
	if seatbelt {
		backends = append(slices.Clip(backends), optionalBackends...)
	}
	best := tryBackends(ctx, backends)
	remember(best)
	return best
}

func tryBackends(ctx context.Context, backends []Backend) Report {
	best := Report{}
	var none noBackendError
	for _, b := range backends {
		r, err := probe(ctx, b)
		var cannot *noBackendError
		switch {
		case errors.As(err, &cannot):
			none.add(cannot.Why, cannot.Remedy)
			continue
		case err != nil:
			none.add([]string{fmt.Sprintf("%s: %v.", b, err)}, "")
			continue
		}
		if count(r.Enforces) > count(best.Enforces) || best.Backend == None {
			best = r
		}
		if r.Enforces.all() {
			break
		}
	}
	if len(backends) == 0 {
		none.Report = platformReport()
	}
	best.Why, best.Remedy = append(none.Why, best.Why...), cmp.Or(none.Remedy, best.Remedy)
	return best
}

// count is how many kinds of things are held.
func count(e enforcement) (n int) {
	for _, held := range []bool{e.Writes, e.Denies, e.Network, e.Processes} {
		if held {
			n++
		}
	}
	return n
}

// placeCanary makes the files of a trial. They are the same every time and stay
// in the user's cache directory, since a host that is killed during a trial
// cannot clean up; only without such a directory they are temporary.
func placeCanary() (c contract.Canary, remove func(), err error) {
	remove = func() {}
	dir, err := os.UserCacheDir()
	if err == nil {
		dir = filepath.Join(dir, "toolhost", "probe")
		err = os.MkdirAll(filepath.Join(dir, "open"), 0o700)
	}
	if err != nil {
		if dir, err = os.MkdirTemp("", "toolhost-probe-"); err != nil {
			return c, remove, err
		}
		temporary := dir
		remove = func() { os.RemoveAll(temporary) }
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return c, remove, err
	}
	c = contract.Canary{Read: filepath.Join(dir, "open", "secret"), Write: filepath.Join(dir, "outside")}
	if err := os.MkdirAll(filepath.Dir(c.Read), 0o700); err != nil {
		return c, remove, err
	}
	for _, path := range []string{c.Read, c.Write} {
		if err := os.WriteFile(path, []byte("canary\n"), 0o600); err != nil {
			return c, remove, err
		}
	}
	return c, remove, nil
}

// probe starts a sandbox of one backend, lets its inside try what the policy
// forbids, and takes from the report what did not hold.
func probe(ctx context.Context, b Backend) (Report, error) {
	c, remove, err := placeCanary()
	if err != nil {
		return Report{}, err
	}
	defer remove()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Report{}, err
	}
	defer l.Close()
	c.Port = l.Addr().(*net.TCPAddr).Port
	s, err := Start(ctx, Policy{Writable: []string{filepath.Dir(c.Read)}, Denied: []string{c.Read}},
		Options{Backends: []Backend{b}})
	if err != nil {
		return Report{}, err
	}
	defer s.Close()
	got, err := s.engine.try(c)
	if err != nil {
		return Report{}, err
	}
	r := s.Report()
	for _, f := range []struct {
		held *bool
		bad  bool
		what string
	}{
		{&r.Enforces.Denies, got.Read, "a denied file could be read"},
		{&r.Enforces.Writes, got.Wrote, "a file outside could be written"},
		{&r.Enforces.Network, got.Connected, "a port of this machine could be reached"},
	} {
		if *f.held && f.bad {
			*f.held = false
			r.Why = append(r.Why, fmt.Sprintf("%s: %s in a trial.", b, f.what))
		}
	}
	return r, nil
}
