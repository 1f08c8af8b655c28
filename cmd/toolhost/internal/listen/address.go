package listen

import (
	"fmt"
	"net"
	"strconv"
)

// A UsageError says that an address, or an option given with it, is invalid on every machine, and not only
// unavailable on this one.
type UsageError struct{ error }

// Usage returns a UsageError.
func Usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.error }

// CheckAddress returns an error if an address is not a valid host:port. It resolves no names.
func CheckAddress(address string) error {
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		return Usage("it is a port without an address: 127.0.0.1:%s is for this machine alone", address)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return Usage("%w: it is an address and a port, such as 127.0.0.1:8377", err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Usage("invalid port %q: it is a number from 0, which picks one, to 65535", port)
	}
	return nil
}
