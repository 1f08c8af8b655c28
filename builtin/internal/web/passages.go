package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on the choice of passages.
const (
	// maxBlock is the longest block, in bytes. A longer one is split between lines.
	maxBlock = 3000
	// gapRoom is how many characters the note on a gap takes.
	gapRoom = 40
)

// A View is the part of a text that is shown.
type View struct {
	Text string
	// Total is how many characters the text has, and Shown how many of them are shown.
	Total, Shown int
	// Next is the offset, in characters, of the first gap, or 0 if everything after the first part is shown.
	Next int
}

// Show returns the part of the text that fits into limit characters. It begins at the character offset. If offset is
// 0 and there is a question, it consists of the blocks that match the question best, in order.
func (d *Document) Show(question string, offset, limit int) View {
	text, begin, total := d.Text, d.Begin, utf8.RuneCountInString(d.Text)
	if offset == 0 && begin == 0 && total > limit {
		if terms := termsOf(question); len(terms) > 0 {
			d.once.Do(func() { d.blocks = blocksOf(text) })
			if v, ok := ranked(text, d.blocks, terms, total, limit); ok {
				return v
			}
		}
	}
	from := byteOffset(text, offset)
	if offset == 0 {
		from, offset = begin, utf8.RuneCountInString(text[:begin])
	}
	part := text[from:]
	shown := total - offset
	if shown > limit {
		end := byteOffset(part, limit)
		if at := strings.LastIndexByte(part[:end], '\n'); at > end/2 {
			end = at + 1
		}
		part = part[:end]
		shown = utf8.RuneCountInString(part)
	}
	v := View{Text: part, Total: total, Shown: max(shown, 0)}
	if offset+shown < total {
		v.Next = offset + shown
	}
	return v
}

// byteOffset returns the offset in bytes of the nth character of a text.
func byteOffset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// A block is a paragraph, or a piece of a list, of a table or of code.
type block struct {
	from, to int // bytes
	runes    int
	section  int            // the number of the heading above it
	words    map[string]int // words of the block and its headings; those of headings count twice
	length   int
}

// blocksOf splits a Markdown text into blocks.
func blocksOf(text string) []block {
	var all []block
	var path [7]string
	section, fenced := 0, false
	start := 0
	end := func(to int) {
		if strings.TrimSpace(text[start:to]) == "" {
			start = min(start, to)
			return
		}
		b := block{from: start, to: to, section: section, runes: utf8.RuneCountInString(text[start:to]),
			words: map[string]int{}}
		for _, w := range wordsOf(text[start:to]) {
			b.words[w]++
			b.length++
		}
		for _, heading := range path {
			for _, w := range wordsOf(heading) {
				b.words[w] += 2
			}
		}
		all = append(all, b)
		start = to
	}
	at := 0
	for line := range strings.Lines(text) {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		heading := !fenced && level > 0 && level < 7 && strings.HasPrefix(line[level:], " ")
		if heading || at-start > maxBlock {
			end(at)
		}
		if heading {
			section++
			path[level] = line
			for i := level + 1; i < len(path); i++ {
				path[i] = ""
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		at += len(line)
		if !fenced && !heading && strings.TrimSpace(line) == "" {
			end(at)
		}
		for at-start > 2*maxBlock { // a very long line
			to := start + maxBlock
			for !utf8.RuneStart(text[to]) {
				to--
			}
			end(to)
		}
	}
	end(len(text))
	return all
}

// ranked returns a view with the blocks that match the terms best. It reports false if none does.
func ranked(text string, blocks []block, terms []string, total, limit int) (View, bool) {
	scores := rank(blocks, terms)
	order := make([]int, len(blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	if len(order) == 0 || scores[order[0]] == 0 {
		return View{}, false
	}
	chosen, room := map[int]bool{}, limit
	take := func(i int) {
		if i >= 0 && i < len(blocks) && !chosen[i] && blocks[i].runes+gapRoom <= room {
			chosen[i], room = true, room-blocks[i].runes-gapRoom
		}
	}
	take(0)
	for _, i := range order {
		if scores[i] == 0 {
			break
		}
		take(i)
		for near := i - 1; near >= 0 && blocks[near].section == blocks[i].section && near >= i-2; near-- { // its heading
			take(near)
		}
		for near := i + 1; near < len(blocks) && blocks[near].section == blocks[i].section && near <= i+3; near++ {
			take(near)
		}
	}
	best := order[:min(len(order), maxSpread)]
	for d := 1; d < len(blocks) && room > gapRoom; d++ { // the rest of the room is for the neighbours of the best blocks
		for _, i := range best {
			if scores[i] > 0 {
				take(i - d)
				take(i + d)
			}
		}
	}
	return join(text, blocks, chosen, total), true
}

// maxSpread is the number of best blocks whose neighbours may be shown too.
const maxSpread = 8

// join joins the chosen blocks in order, with notes on the gaps.
func join(text string, blocks []block, chosen map[int]bool, total int) View {
	v := View{Total: total}
	var out strings.Builder
	missing, seen := 0, 0
	gap := func() {
		if missing > 0 {
			fmt.Fprintf(&out, "[… %s characters …]\n\n", grouped(missing))
			missing = 0
		}
	}
	for i, b := range blocks {
		if !chosen[i] {
			if missing += b.runes; v.Next == 0 && v.Shown > 0 {
				v.Next = seen
			}
			seen += b.runes
			continue
		}
		gap()
		part := text[b.from:b.to]
		out.WriteString(part)
		if !strings.HasSuffix(part, "\n") {
			out.WriteString("\n")
		}
		seen += b.runes
		v.Shown += b.runes
	}
	gap()
	v.Text = out.String()
	return v
}

// rank returns the scores of the blocks: BM25, and a share of the scores of their neighbours.
func rank(blocks []block, terms []string) []float64 {
	const k, b = 1.2, .6
	length, holds := 0.0, map[string]float64{}
	for i := range blocks {
		length += float64(blocks[i].length)
		for _, t := range terms {
			if blocks[i].words[t] > 0 {
				holds[t]++
			}
		}
	}
	length = max(length/float64(max(len(blocks), 1)), 1)
	own := make([]float64, len(blocks))
	for i := range blocks {
		for _, t := range terms {
			n := float64(blocks[i].words[t])
			idf := math.Log(1 + (float64(len(blocks))-holds[t]+.5)/(holds[t]+.5))
			own[i] += idf * n * (k + 1) / (n + k*(1-b+b*float64(blocks[i].length)/length))
		}
	}
	scores := slices.Clone(own)
	for i := range blocks {
		for _, near := range []int{i - 1, i + 1} {
			if near >= 0 && near < len(blocks) && blocks[near].section == blocks[i].section {
				scores[i] += own[near] / 4
			}
		}
	}
	return scores
}

// common are words that are too common in questions to be searched for.
var common = strings.Fields(`
	a about all an and any are as at be by can could do does each every extract find for from get give how i if in
	information into is it its list me my of on or out page please provide return say show summarize summary tell that
	the their them then there these this to use used using was we what when where which who why will with would you your
	content document documentation explain describe details main`)

// termsOf returns the words of a question that count, each once.
func termsOf(question string) []string {
	var terms []string
	for _, w := range wordsOf(question) {
		if !slices.Contains(terms, w) {
			terms = append(terms, w)
		}
	}
	return terms
}

// wordsOf returns the words of a text in the form in which they are compared: in lower case, without common words and
// without endings. In scripts without spaces the words are pairs of characters.
func wordsOf(text string) []string {
	var all []string
	ends := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }
	for _, w := range strings.FieldsFunc(strings.ToLower(text), ends) {
		if runes := []rune(w); len(runes) > 1 && unicode.In(runes[0], unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Thai) {
			for i := range len(runes) - 1 {
				all = append(all, string(runes[i:i+2]))
			}
			continue
		}
		if slices.Contains(common, w) {
			continue
		}
		all = append(all, stem(w))
		if strings.Contains(w, "_") {
			for _, part := range strings.FieldsFunc(w, func(r rune) bool { return r == '_' }) {
				all = append(all, stem(part))
			}
		}
	}
	return all
}

// stem removes English endings, so that the forms of a word become equal.
func stem(w string) string {
	for _, end := range []string{"ization", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "es", "ed", "er",
		"ly", "s", "e", "y"} {
		if rest, ok := strings.CutSuffix(w, end); ok && len(rest) >= 3 {
			return rest
		}
	}
	return w
}

// grouped writes a number with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
