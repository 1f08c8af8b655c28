package alias

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxListed is the longest name of a tool on a list, in bytes. Clients add the prefix mcp__toolhost__, and models
// accept 64 characters.
const maxListed = 49

// Listed returns the shortened name under which a tool of another server is listed, or "" if its full name is listed.
func Listed(full string) string {
	const hash = 3 // bytes
	if len(full) <= maxListed {
		return ""
	}
	sum := sha256.Sum256([]byte(full))
	return full[:maxListed-2*hash-1] + "_" + hex.EncodeToString(sum[:hash])
}
