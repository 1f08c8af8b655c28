package netstack

import (
	"io"
	"net"
)

// carry copies one direction and passes its end on. An error resets both directions, as the network outside would
// have done.
func carry(to, from net.Conn, abort func()) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		abort()
	}
}
