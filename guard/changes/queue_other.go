//go:build !linux

package changes

// queue does not exist here.
type queue struct{}

func openQueue() (*queue, error) { return nil, ErrUnsupported }

func (*queue) close() error { return nil }

func (*queue) add(string, subject) (int32, error) { return 0, ErrUnsupported }

func (*queue) remove(int32) {}

func (*queue) drain(func(int32, Event, bool)) error { return ErrUnsupported }

func (*queue) wait(func()) {}
