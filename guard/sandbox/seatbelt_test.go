package sandbox

import (
	"strings"
	"testing"
)

func TestSeatbeltProfile(t *testing.T) {
	p := Policy{
		Writable: []string{"/ws", "/home/u/.state/tmp"},
		ReadOnly: []string{"/ws/.git/hooks"},
		Denied:   []string{"/ws/conf/.env", `/ws/a"b\c)`},
		Masked:   []string{"/home/u/.ssh", "/home/u/.state"},
		Shown:    []string{"/home/u/.state/own"},
		Programs: []string{"/bin/rm"},
		Sockets:  []string{"/run/allowed.sock"},
	}
	profile := seatbeltProfile(p, 3128)
	// In this order: the last rule that matches decides.
	rest := profile
	for _, want := range []string{
		`(version 1)`, `(deny default)`, `(allow file-read*)`,
		`(deny file-read* file-write* (subpath "/home/u/.ssh"))`,
		`(deny file-read* file-write* (subpath "/home/u/.state"))`,
		`(allow file-read* (subpath "/home/u/.state/own"))`,
		`(allow file-read* file-write* (subpath "/home/u/.state/tmp"))`,
		`(allow file-read* file-write* (subpath "/ws"))`,
		`(deny file-write* (subpath "/ws/.git/hooks"))`,
		`(deny file-read* file-write* (subpath "/ws/conf/.env"))`,
		`(deny file-read* file-write* (subpath "/ws/a\"b\\c)"))`,
		`(deny file-read* file-write* process-exec* (literal "/bin/rm"))`,
		`(deny file-write-unlink (literal "/ws/.git"))`,
		`(deny file-write-unlink (literal "/ws/conf"))`,
		`(allow network-outbound (remote tcp "localhost:3128"))`,
		`(allow network-bind network-outbound (subpath "/run/allowed.sock"))`,
	} {
		_, after, found := strings.Cut(rest, want+"\n")
		if !found {
			t.Fatalf("%s is missing, or in the wrong place, in\n%s", want, profile)
		}
		rest = after
	}
	if strings.Count(profile, "(") < 20 || strings.Contains(profile, "(allow network*)") {
		t.Errorf("network is open:\n%s", profile)
	}
}
