package pattern

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed properties.txt
var propertyTable string

// properties are the sets of the embedded table by the loose names of the properties.
var properties = sync.OnceValue(func() map[string]set {
	all := map[string]set{}
	for line := range strings.Lines(propertyTable) {
		names, ranges, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		var s set
		for r := range strings.FieldsSeq(ranges) {
			first, last, isRange := strings.Cut(r, "-")
			if !isRange {
				last = first
			}
			lo, err := strconv.ParseInt(first, 16, 32)
			hi, errHi := strconv.ParseInt(last, 16, 32)
			if err != nil || errHi != nil {
				panic("pattern: properties.txt: bad range " + r)
			}
			s = append(s, rune(lo), rune(hi))
		}
		for name := range strings.FieldsSeq(names) {
			all[name] = s
		}
	}
	return all
})
