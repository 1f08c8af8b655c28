package shell

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// A Gate judges the programs that a command starts, and its connections.
type Gate interface {
	// Judge is a [execgate.Judge].
	Judge(ctx context.Context, e *execgate.Exec) execgate.Verdict
	// Connect is a [connectgate.Judge].
	Connect(ctx context.Context, c connectgate.Connection) (allowed bool, why string)
	// Held returns how long the command has waited for a person. That time does not count towards its timeout.
	Held() time.Duration
	// Spent is closed when the command has waited too long for a person and must be ended.
	Spent() <-chan struct{}
	// Parted is closed when the command must continue as a task, because a person is to be asked about one of its
	// programs after the call has returned. Nil: that does not happen.
	Parted() <-chan struct{}
}

// ungated is the gate of commands whose programs are not judged, and whose connections need no judgement.
type ungated struct{}

func (ungated) Judge(context.Context, *execgate.Exec) (v execgate.Verdict)     { return v }
func (ungated) Connect(context.Context, connectgate.Connection) (bool, string) { return false, "" }
func (ungated) Held() time.Duration                                            { return 0 }
func (ungated) Spent() <-chan struct{}                                         { return nil }
func (ungated) Parted() <-chan struct{}                                        { return nil }
