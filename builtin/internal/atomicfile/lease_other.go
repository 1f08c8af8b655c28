//go:build !linux

package atomicfile

import "os"

// A hold would keep other programs from opening a file for writing, but only Linux supports that.
type hold struct{ busy bool }

func holdFile(*os.File) hold { return hold{} }

func (hold) holds() bool { return false }

func (hold) wanted() bool { return false }

func (*hold) release() {}
