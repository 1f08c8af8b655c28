package mcpserver

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/builtin"
)

// The parameters of BM25. Weights for names, descriptions and parameters, and synonyms, were no better than one field
// of all words.
const (
	termSaturation = 1.2 // k1
	lengthPenalty  = 0.5 // b
)

// Limits of what is indexed of a tool and read of a query.
const (
	maxIndexedDoc = 2048 // bytes of a description
	maxTerms      = 64   // distinct words of a query
)

// A toolIndex finds tools by words. It is immutable.
type toolIndex struct {
	entries  []toolEntry
	postings map[string][]posting // by word
	average  float64              // average number of words of an entry
}

// A toolEntry is a tool, or a server without known tools.
type toolEntry struct {
	name   string        // of the tool; mcp__SERVER__ for a server
	def    *builtin.Def  // nil for a server
	server foreignServer // empty for tools of this host
	words  int
}

type posting struct{ entry, count int }

// newToolIndex indexes the tools of other servers, and those tools of this host that were asked for by name.
func newToolIndex(all []*builtin.Def, servers []foreignServer) *toolIndex {
	x := &toolIndex{postings: map[string][]posting{}}
	known := map[string]foreignServer{}
	for _, s := range servers {
		known[s.Name] = s
	}
	silent := maps.Clone(known)
	for _, d := range all {
		delete(silent, d.Server)
		if d.Server != "" || d.OptIn {
			x.add(toolEntry{name: d.Name, def: d, server: known[d.Server]},
				strings.Join([]string{d.Name, d.Doc[:min(len(d.Doc), maxIndexedDoc)], d.Brief, parameterNames(d)}, " "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		x.add(toolEntry{name: "mcp__" + name + "__", server: silent[name]}, name+" "+silent[name].Purpose)
	}
	for _, e := range x.entries {
		x.average += float64(e.words) / float64(len(x.entries))
	}
	return x
}

// parameterNames returns the names of a tool's parameters, separated by blanks.
func parameterNames(d *builtin.Def) string {
	if d.Schema != nil {
		return strings.Join(slices.Sorted(maps.Keys(d.Schema.Properties)), " ")
	}
	return strings.Join(slices.Sorted(maps.Keys(rawProperties(d.RawSchema))), " ")
}

func (x *toolIndex) add(e toolEntry, text string) {
	counts := map[string]int{}
	for word := range words(text) {
		counts[word]++
		e.words++
	}
	for word, n := range counts {
		x.postings[word] = append(x.postings[word], posting{len(x.entries), n})
	}
	x.entries = append(x.entries, e)
}

// fillers are words of questions that say nothing about what a tool does, as [stem] returns them.
var fillers = slices.Collect(words("a an and any are as at be by can did do does for from get has have how i in into " +
	"is it its me my of on or our that the " +
	"their them this to us was we were what when where which who whose will with you your"))

// stem returns a word in lower case without the endings of plurals and verb forms.
func stem(word string) string {
	word = strings.ToLower(word)
	if rest, ok := strings.CutSuffix(word, "ies"); ok && len(rest) > 1 {
		word = rest + "y"
	} else if len(word) > 3 && !strings.HasSuffix(word, "ss") {
		word = strings.TrimSuffix(word, "s")
	}
	for _, end := range []string{"ing", "ed"} {
		if rest, ok := strings.CutSuffix(word, end); ok && len(rest) > 3 {
			word = rest
			break
		}
	}
	if n := len(word); n > 4 && word[n-1] == word[n-2] && !strings.ContainsRune("aeiouls", rune(word[n-1])) {
		word = word[:n-1] // dropping, dropped
	}
	if len(word) > 3 {
		word = strings.TrimSuffix(word, "e")
	}
	return word
}

// words yields the words of a text, as [stem] returns them. A word is a run of letters and digits, or a part of a
// camelCase name.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var word []rune
		end := func() bool {
			w := stem(string(word))
			word = word[:0]
			return w == "" || yield(w)
		}
		var before rune
		for _, c := range text {
			if !unicode.IsLetter(c) && !unicode.IsDigit(c) || unicode.IsUpper(c) && unicode.IsLower(before) {
				if !end() {
					return
				}
			}
			if before = c; unicode.IsLetter(c) || unicode.IsDigit(c) {
				word = append(word, c)
			}
		}
		end()
	}
}

// find returns the entries that match a query, best first and then by name. The name of every entry contains all of
// required, in lower case; it starts with the name of its server.
func (x *toolIndex) find(query string, required []string) []toolEntry {
	var terms []string // in order, because sums of floats depend on it
	for word := range words(query) {
		if len(terms) < maxTerms && !slices.Contains(terms, word) {
			terms = append(terms, word)
		}
	}
	if telling := slices.DeleteFunc(slices.Clone(terms),
		func(w string) bool { return slices.Contains(fillers, w) }); len(telling) > 0 {
		terms = telling
	}
	scores := map[int]float64{}
	for _, word := range terms {
		found := x.postings[word]
		rarity := math.Log(1 + (float64(len(x.entries))-float64(len(found))+0.5)/(float64(len(found))+0.5))
		for _, p := range found {
			n, length := float64(p.count), float64(x.entries[p.entry].words)/x.average
			scores[p.entry] += rarity * n * (termSaturation + 1) / (n + termSaturation*(1-lengthPenalty+lengthPenalty*length))
		}
	}
	if len(required) > 0 {
		ranked := scores
		scores = map[int]float64{}
		for i, e := range x.entries {
			if e.contains(required) {
				scores[i] = ranked[i]
			}
		}
	}
	best := slices.SortedFunc(maps.Keys(scores), func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(x.entries[a].name, x.entries[b].name))
	})
	found := make([]toolEntry, len(best))
	for i, at := range best {
		found[i] = x.entries[at]
	}
	return found
}

func (e toolEntry) contains(required []string) bool {
	name := strings.ToLower(e.name)
	return !slices.ContainsFunc(required, func(part string) bool { return !strings.Contains(name, part) })
}
