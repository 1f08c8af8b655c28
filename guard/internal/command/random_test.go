//go:build slow && unix

package command

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fragments are what randomText puts together: separators, quotes, expansions,
// wrappers and the words that turn them against each other.
var fragments = strings.Split(`rm|ls|cat|x|y|a.txt| |  |;| ; |\n|NL|P|&& |PP|& wait |P& |$(|)|`+"`"+
	`|'|"|\|$'|$"|\x72m|{|,|}|{rm,x}|(|(|)|{ |; }|! |#| #|$|${|}|$x|"$x"|$@|`+
	`if |; then |; else |; fi|for i in |; do |; done|while |case a in a) |;;|; esac|[[ | ]]|((|))|$((|=|x=|y=$|+=|~|*|?|[|]|a[|<<EOF\n|\nEOF\n|<<'EOF'\n|<<-EOF\n|<<< |< a.txt |> o |2>&1 |<(|>(|`+
	`eval |bash -c |sh -c |env |timeout 5 |nice |xargs |command |exec |builtin |trap |find . -exec |{} |\; |+ |-I{} |-n1 |-- |-e |-c |f() |function f |f|time |coproc |declare |export |let |test |-v |-eq |read |printf |echo |LC|LC|>&|<&|-|-a |-n |+n |-norc |jobs -x |local |a=() |"$x"|{a[b]}>|$[|@P|:-|:=|:|/|%|!|\n#|\\n`, "|")

// randomText returns a text of 3 to 14 fragments.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 3 + r.IntN(12) {
		f := fragments[r.IntN(len(fragments))]
		f = strings.ReplaceAll(strings.ReplaceAll(f, "NL", "\n"), "LC", "\\\n")
		f = strings.ReplaceAll(f, "\\n", "\n")
		b.WriteString(strings.ReplaceAll(f, "P", "|"))
	}
	return b.String()
}

// splice puts fragments into a text of the corpus, or cuts bytes out of it.
func splice(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		if r.IntN(3) == 0 {
			text = text[:at] + text[min(len(text), at+1+r.IntN(3)):]
			continue
		}
		f := strings.ReplaceAll(fragments[r.IntN(len(fragments))], "\\n", "\n")
		f = strings.NewReplacer("NL", "\n", "LC", "\\\n", "P", "|").Replace(f)
		text = text[:at] + f + text[at:]
	}
	return text
}

// TestRandomAgainstBash looks for texts that the parser and bash read
// differently. A short run is part of every test; COMMAND_RANDOM=10m and the
// like look longer.
func TestRandomAgainstBash(t *testing.T) {
	lab := newShellLab(t)
	count, until := 150, time.Time{}
	seed := uint64(1)
	if v := os.Getenv("COMMAND_RANDOM"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		count, until, seed = 1<<30, time.Now().Add(d), uint64(time.Now().UnixNano())
		t.Log("seed " + strconv.FormatUint(seed, 10))
	}
	r := rand.New(rand.NewPCG(seed, 0))
	tricky := corpus(t, "tricky.txt")
	for i := 0; i < count && (until.IsZero() || time.Now().Before(until)); {
		var text string
		switch r.IntN(3) {
		case 0:
			text = randomText(r)
		case 1:
			text = splice(r, tricky[r.IntN(len(tricky))])
		default:
			text = randomQuoted(r)
		}
		if !harmless(text) || Analyze(text).Hiding {
			continue // nothing could be compared
		}
		i++
		lab.compare(t, text)
	}
}
