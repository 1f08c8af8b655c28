//go:build !unix

package guard

import "github.com/toolhost/toolhost/guard/internal/pathname"

// ownerHomes returns none: no other user's files are open to the host's commands here.
func ownerHomes([]pathname.Place) []string { return nil }
