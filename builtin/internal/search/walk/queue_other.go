//go:build !linux

package walk

// Queue does not exist here.
type Queue struct{}

// OpenQueue returns ErrUnsupported.
func OpenQueue() (*Queue, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Queue) Close() error { return nil }

// Add returns ErrUnsupported.
func (*Queue) Add(int) (int32, error) { return 0, ErrUnsupported }

// Remove does nothing.
func (*Queue) Remove(int32) {}

// Drain returns ErrUnsupported.
func (*Queue) Drain(func(Event)) error { return ErrUnsupported }

// Wait returns.
func (*Queue) Wait(func()) {}

// Mounts does not exist here.
type Mounts struct{}

// OpenMounts returns ErrUnsupported.
func OpenMounts(string) (*Mounts, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Mounts) Close() error { return nil }

// Changed reports that anything may have changed.
func (*Mounts) Changed() bool { return true }
