//go:build !unix

package privatefile

import "io/fs"

// NoFollow and NoWait are flags of opening that have no equal here.
const (
	NoFollow = 0
	NoWait   = 0
)

// Ours reports that every file belongs to the user: access lists are not examined.
func Ours(fs.FileInfo) bool { return true }

// GivenByRoot reports false: there is no root.
func GivenByRoot(fs.FileInfo, int) bool { return false }
