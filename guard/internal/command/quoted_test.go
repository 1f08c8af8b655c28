//go:build slow && unix

package command

import (
	"math/rand/v2"
	"strings"
)

func pick(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

func nested(r *rand.Rand, depth int) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		b.WriteString(quotedPiece(r, depth))
	}
	return b.String()
}

// closings are the brackets that quotedPiece puts around a text.
var closings = [...][2]string{
	{"'", "'"}, {`"`, `"`}, {`"`, `"`}, {"$'", "'"}, {"$(", ")"}, {"`", "`"}, {"$((", "))"}, {"$(echo ", ")"}, {"<(", ")"}, {"a=(", ")"}, {"$[", "]"},
	{" <<E\n", "\nE\n"}, {" <<'E'\n", "\nE\n"}, {" <<-E\n", "\n\tE\n"}, {" <<E\\\nF\n", "\nEF\n"}, {" <<\"$x\"\n", "\n$x\n"},
	{"$(case a in a) ", ";; esac)"}, {"$(# ", "\n)"}, {" # ", "\n"}, {"{ ", "; }"}, {"[[ ", " ]]"}, {"! ", ""}, {`\`, ""}, {"\\\n", ""}, {" <<< ", ""},
}

func quotedPiece(r *rand.Rand, depth int) string {
	if depth == 0 {
		return pick(r, "a", "b", "'", `\`, `\'`, `\"`, "$(rm x)", "`rm x`", "}", "{", "#", " ", ")", "$x", `"`,
			"; rm x;", "\nrm x\n", "$", "''", `""`, "$'", `$"`)
	}
	switch r.IntN(8) {
	case 0, 1:
		return pick(r, "rm x", "echo ", ";", "\n", "|", "&&", "'", `"`, "x=", "$(rm x)", "`rm x`", " ")
	case 2, 3:
		operator := pick(r, ":-", "-", ":=", "=", ":+", "+", ":?", "#", "##", "%", "%%", "/", "//", "/#", "/%", "/a/",
			"^", ",", ":", ":0:", "@", "[")
		return "${x" + operator + nested(r, depth-1) + pick(r, "}", "}", "}", "]}")
	}
	around := closings[r.IntN(len(closings))]
	return around[0] + nested(r, depth-1) + around[1]
}
