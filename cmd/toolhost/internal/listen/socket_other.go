//go:build !unix

package listen

import (
	"fmt"
	"log/slog"
)

// openUnix refuses: nothing here would keep other users of the machine out of the socket.
func openUnix(path string, _ *slog.Logger) (*Listener, error) {
	return nil, fmt.Errorf("--listen %s%s: Unix sockets are not served on this system: listen on 127.0.0.1", unixPrefix, path)
}
