package mcpserver

import "flag"

var long = flag.Bool("long", false, "run the tests of many sessions and the soak in their long form")

// often is how often something is done.
func often(short, inLong int) int {
	if *long {
		return inLong
	}
	return short
}
