package command

import (
	"regexp"
	"strings"
	"sync"
)

// regular returns a regular expression that is compiled when it is first asked for: few commands need one, and
// compiling all takes time and memory of every start. parts holds names and texts in turn: each name in the
// expression stands for the text after it.
func regular(text string, parts ...string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		for i := 0; i+1 < len(parts); i += 2 {
			text = strings.ReplaceAll(text, parts[i], parts[i+1])
		}
		return regexp.MustCompile(text)
	})
}
