package text

import (
	"slices"
	"sort"
	"strings"
)

// maxCutLine is the longest line, in bytes, that is cut to the part that looks like the text. A longer line is shown
// whole.
const maxCutLine = 64 << 10

// alike looks in the lines have for the first place that looks like old, and reports whether there is one. If so, it
// sets the error to that place, which may begin and end within a line.
func (e *NotFoundError) alike(old string, want, have []string) bool {
	needle := skeleton(old)
	if needle == "" {
		return false
	}
	var all strings.Builder
	starts := make([]int, len(have)) // where the skeleton of each line starts in all
	for i, line := range have {
		if bare := skeleton(line); bare != "" {
			if all.Len() > 0 {
				all.WriteByte(' ')
			}
			starts[i] = all.Len()
			all.WriteString(bare)
			continue
		}
		starts[i] = all.Len()
	}
	from := strings.Index(all.String(), needle)
	if from < 0 {
		return false
	}
	end := from + len(needle)
	first := lineAt(starts, from)
	last := max(first, lineAt(starts, end-1))
	place := slices.Clone(have[first : last+1])
	if n := end - starts[last]; n < len(skeleton(have[last])) {
		shortest, _ := ends(have[last], n)
		place[len(place)-1] = have[last][:shortest]
	}
	if n := from - starts[first]; n > 0 {
		_, longest := ends(have[first], n)
		place[0] = place[0][min(longest, len(place[0])):]
	}
	e.show(comparePlace(want, place, first+1))
	switch {
	case !slices.Equal(want, place):
		e.Reason = reason(want, place)
	case strings.HasSuffix(old, "\n") && last == len(have)-1:
		e.Reason = "the file has no newline at its end, and old_string ends in one"
	}
	return true
}

// lineAt returns the last line that starts at an offset or before it.
func lineAt(starts []int, offset int) int {
	return sort.Search(len(starts), func(i int) bool { return starts[i] > offset }) - 1
}

// ends returns the shortest and the longest prefix of a line whose skeleton has n bytes.
func ends(line string, n int) (shortest, longest int) {
	if len(line) > maxCutLine {
		return len(line), 0
	}
	runes := make([]int, 0, len(line)+1)
	for i := range line {
		runes = append(runes, i)
	}
	runes = append(runes, len(line))
	has := func(n int) int {
		return sort.Search(len(runes), func(i int) bool { return len(skeleton(line[:runes[i]])) >= n })
	}
	return runes[min(has(n), len(runes)-1)], runes[max(has(n+1)-1, 0)]
}

// skeleton returns a form that is the same for all texts that look alike, apart from the amount of whitespace and the
// case of letters.
func skeleton(s string) string { return strings.ToLower(squeeze(LookAlike(s))) }
