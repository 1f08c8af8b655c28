package shell

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// A Gate judges the programs that a command starts, and its connections.
type Gate interface {
	// Judge is a [sandbox.ExecJudge].
	Judge(ctx context.Context, e *sandbox.Exec) sandbox.ExecVerdict
	// Connect is a [sandbox.HostJudge].
	Connect(ctx context.Context, c sandbox.Connection) (allowed bool, why string)
	// Held is for how long the command has waited for a person: its time does not pass meanwhile.
	Held() time.Duration
	// Spent is closed when the command has waited too long for a person and must be ended.
	Spent() <-chan struct{}
	// Parted is closed when the command is to continue as a task, because the question of a program is put to a person
	// after its call. Nil: that does not happen.
	Parted() <-chan struct{}
}

// ungated is the gate of a command of which no program is judged, and which makes no connections that must be.
type ungated struct{}

func (ungated) Judge(context.Context, *sandbox.Exec) (v sandbox.ExecVerdict) { return v }
func (ungated) Connect(context.Context, sandbox.Connection) (bool, string)   { return false, "" }
func (ungated) Held() time.Duration                                          { return 0 }
func (ungated) Spent() <-chan struct{}                                       { return nil }
func (ungated) Parted() <-chan struct{}                                      { return nil }
