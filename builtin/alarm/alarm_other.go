//go:build !linux

package alarm

import (
	"errors"
	"time"
)

// quiet is a clock that other systems do not have.
type quiet struct{}

func newQuiet() (*quiet, error) { return nil, errors.ErrUnsupported }

func (*quiet) set(time.Duration) {}
func (*quiet) wait() bool        { return false }
func (*quiet) close()            {}
