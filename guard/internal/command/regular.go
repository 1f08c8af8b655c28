package command

import (
	"regexp"
	"sync"
)

// regular returns a regular expression that is compiled when it is first asked for:
// few commands need one, and compiling all takes time and memory of every start.
func regular(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
