package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// seatbeltProfile writes the policy in the language of sandbox-exec(1). The last rule that matches
// decides, so deeper and stricter rules come later. Paths must be resolved: the kernel compares
// names without symbolic links (/tmp is /private/tmp). proxyPort is the one port of the loopback
// interface that commands may connect to; 0 means none.
func seatbeltProfile(p Policy, proxyPort int) string {
	var b strings.Builder
	rule := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	rule(`(version 1)`)
	rule(`(deny default)`)
	rule(`(allow process-exec process-fork)`)
	rule(`(allow signal process-info* (target same-sandbox))`)
	rule(`(allow sysctl-read)`)
	rule(`(allow ipc-posix-sem ipc-posix-shm-read* ipc-posix-shm-write-create ipc-posix-shm-write-data)`)
	rule(`(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger") (global-name "com.apple.SystemConfiguration.configd"))`)
	rule(`(allow file-read*)`)
	rule(`(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/(ttys|fd/)[0-9]+$"))`)
	rule(`(allow pseudo-tty)`)
	for _, l := range seatbeltLayers(p) {
		rule(`(%s (subpath %s))`, l.verb, seatbeltString(l.path))
	}
	for _, path := range p.Denied {
		rule(`(deny file-read* file-write* (subpath %s))`, seatbeltString(path))
	}
	for _, path := range p.Programs {
		rule(`(deny file-read* file-write* process-exec* (literal %s))`, seatbeltString(path))
	}
	for _, dir := range seatbeltPins(p) {
		rule(`(deny file-write-unlink (literal %s))`, seatbeltString(dir)) // renamed, it would carry a guarded path away
	}
	seatbeltNetwork(rule, p, proxyPort)
	return b.String()
}

// seatbeltLayer is one rule about a tree.
type seatbeltLayer struct{ verb, path string }

// seatbeltLayers orders the trees so that the deeper one decides.
func seatbeltLayers(p Policy) []seatbeltLayer {
	var list []seatbeltLayer
	for _, k := range []struct {
		verb  string
		paths []string
	}{
		{"allow file-read* file-write*", p.Writable}, {"deny file-write*", p.ReadOnly},
		{"deny file-read* file-write*", p.Masked}, {"allow file-read*", p.Shown},
	} {
		for _, path := range k.paths {
			list = append(list, seatbeltLayer{k.verb, path})
		}
	}
	slices.SortStableFunc(list, func(a, b seatbeltLayer) int { return strings.Compare(a.path, b.path) })
	return list
}

// seatbeltPins returns the paths that must not be renamed: the pinned paths below writable ones, and the directories
// between a writable path and a guarded path below it.
func seatbeltPins(p Policy) []string {
	var list []string
	for i, path := range slices.Concat(p.Pinned, p.ReadOnly, p.Denied, p.Masked) {
		for _, w := range p.Writable {
			if i < len(p.Pinned) && place.Below(path, w) {
				list = append(list, path)
			}
			for dir := filepath.Dir(path); place.Below(dir, w); dir = filepath.Dir(dir) {
				list = append(list, dir)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// seatbeltNetwork writes the rules about sockets. macOS has no network of a
// sandbox's own: without the rule for the proxy commands cannot even talk to
// each other.
func seatbeltNetwork(rule func(string, ...any), p Policy, proxyPort int) {
	if proxyPort != 0 {
		rule(`(allow network-outbound (remote tcp %s))`, seatbeltString("localhost:"+strconv.Itoa(proxyPort)))
	}
	for _, path := range append(slices.Clone(p.Sockets), p.Writable...) {
		rule(`(allow network-bind network-outbound (subpath %s))`, seatbeltString(path))
	}
}

// seatbeltString quotes a path. The language is a Lisp: only the quotation mark
// and the backslash mean something in a string.
func seatbeltString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
