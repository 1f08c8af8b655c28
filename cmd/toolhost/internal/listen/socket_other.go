//go:build !unix

package listen

import (
	"fmt"
	"log/slog"
)

// CheckSocketPath returns an error: there are no such sockets.
func CheckSocketPath(string) error { return Usage("Unix sockets are not served on this system") }

// openUnix returns an error: on this system nothing would keep other users of the machine from connecting.
func openUnix(path string, _ *slog.Logger) (*Listener, error) {
	return nil, fmt.Errorf("--listen %s%s: Unix sockets are not served on this system: listen on 127.0.0.1",
		unixPrefix, path)
}
