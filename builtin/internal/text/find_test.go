package text

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edit is Decode, Find, Apply.
func edit(raw, old, new string, all bool) (string, MatchKind, error) {
	t := Decode([]byte(raw))
	m, err := Find(t, old, new, all)
	if err != nil {
		return "", 0, err
	}
	out, err := applied(t, m)
	return string(out), m.MatchKind, err
}

func TestEdit(t *testing.T) {
	tests := []struct {
		name, file, old, new string
		all                  bool
		want                 string
		how                  MatchKind
	}{
		{"exact", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", Exact},
		{"no final newline stays so", "a\nb", "b", "c", false, "a\nc", Exact},
		{"everything to nothing", "a\nb\n", "a\nb\n", "", false, "", Exact},
		{"all to nothing", "aaaa", "a", "", true, "", Exact},
		{"empty file", "", "", "new\n", false, "new\n", Exact},
		{"all, overlapping", "aaa", "aa", "b", true, "ba", Exact},
		{"byte order mark stays", "\xef\xbb\xbfa\nb\n", "a", "x", false, "\xef\xbb\xbfx\nb\n", Exact},
		{"byte order mark in both texts", "\xef\xbb\xbfa\nb\na\n", "\ufeffa", "\ufeffx", false, "\xef\xbb\xbfx\nb\na\n", Mark},
		{"byte order mark in old only", "\xef\xbb\xbfa\nb\n", "\ufeffa\nb\n", "x", false, "\xef\xbb\xbfx", Mark},
		{"byte order mark in old, all", "\xef\xbb\xbfa\na\n", "\ufeffa", "x", true, "\xef\xbb\xbfx\na\n", Mark},
		{"byte order mark in new only", "\xef\xbb\xbfa\nb\n", "a", "\ufeffx", false, "\xef\xbb\xbfx\nb\n", Exact},
		{"byte order mark alone", "\xef\xbb\xbfa\n", "\ufeff", "\ufeffx\n", false, "\xef\xbb\xbfx\na\n", Mark},
		{"byte order mark and endings", "\xef\xbb\xbfa\r\nb\r\n", "\ufeffa\nb", "\ufeffx\ny", false, "\xef\xbb\xbfx\r\ny\r\n", Mark | LineEndings},
		{"byte order mark and quotes", "\xef\xbb\xbf\u201ca\u201d\n", "\ufeff\"a\"", "\ufeff\"x\"", false, "\xef\xbb\xbf\u201cx\u201d\n", Mark | Quotes},
		{"byte order mark and numbers", "\xef\xbb\xbfa\nb\n", "     1\t\ufeffa\n     2\tb", "     1\t\ufeffa\n     2\tx", false, "\xef\xbb\xbfa\nx\n", Mark | LineNumbers},
		{"byte order mark of UTF-16", "\xff\xfea\x00\n\x00", "\ufeffa", "\ufeffx", false, "\xff\xfex\x00\n\x00", Mark},
		{"byte order mark within the text", "\xef\xbb\xbfa\n\ufeffb\n", "\ufeffb", "x", false, "\xef\xbb\xbfa\nx\n", Exact},
		{"byte order mark twice", "\xef\xbb\xbf\ufeffa\n", "\ufeffa", "x", false, "\xef\xbb\xbfx\n", Exact},
		{"invalid byte stays in UTF-8", "é é é é\nbad \xff\nend\n", "end", "END", false, "é é é é\nbad \xff\nEND\n", Exact},
		{"cp1252 byte on a far line", "first\n" + strings.Repeat("x\n", 997) + "caf\xe9\n", "first", "1st", false, "1st\n" + strings.Repeat("x\n", 997) + "caf\xe9\n", Exact},
		{"cp1252 gets cp1252", "caf\xe9\nb\n", "b", "bé", false, "caf\xe9\nb\xe9\n", Exact},

		{"LF for CRLF", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\n", false, "a\r\nB\r\nc\r\n", LineEndings},
		{"new lines get CRLF", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n", Exact},
		{"match must not tear a CRLF", "a\r\nb\r\n", "\nb", "\nx\nb", false, "a\r\nx\r\nb\r\n", LineEndings},
		{"CRLF for LF", "a\nb\nc\n", "a\r\nb", "a\r\nB\r\n", false, "a\nB\n\nc\n", LineEndings},
		{"mixed stays mixed", "a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nC\nd\n", false, "a\r\nb\nC\r\nd\n", LineEndings},
		{"mixed, exact in its LF part", "a\r\nb\nc\nd\r\n", "b\nc", "b\nx\nc", false, "a\r\nb\nx\nc\nd\r\n", Exact},
		{"lone CR outside stays", "a\rb\nc\n", "c", "x", false, "a\rb\nx\n", Exact},
		{"CR file", "a\rb\rc", "a\nb", "a\nB\nx", false, "a\rB\rx\rc", LineEndings},
		{"all takes both endings", "a\r\nb\nX\na\nb\n", "a\nb\n", "c\n", true, "c\r\nX\nc\n", LineEndings},
		{"all takes those that look alike", "x\r\ny\r\nz\nx\ny\n", "x\ny", "x\nY\nw", true, "x\r\nY\r\nw\r\nz\nx\nY\nw\n", LineEndings},
		{"a CR tells which", "x\r\ny\r\nz\nx\ny\n", "x\r\ny", "x\r\nY", false, "x\r\nY\r\nz\nx\ny\n", Exact},
		{"a lone CR does not look alike", "x\ry\nx\ny\n", "x\ny", "x\nY", false, "x\ry\nx\nY\n", Exact},
		{"all, at the byte order mark and within", "\xef\xbb\xbfa\n\ufeffa\n", "\ufeffa", "\ufeffx", true, "\xef\xbb\xbfx\n\ufeffx\n", Mark},
		{"byte order mark in new, all", "\xef\xbb\xbfa\na\n", "a", "\ufeffx", true, "\xef\xbb\xbfx\n\ufeffx\n", Exact},
		{"endings are the edit", "a\r\nb\r\n", "\r\n", "\n", true, "a\nb\n", Exact},
		{"endings are the edit, the other way", "a\nb\n", "\n", "\r\n", true, "a\r\nb\r\n", Exact},
		{"deleting a line in CRLF", "a\r\nb\r\nc\r\n", "b\n", "", false, "a\r\nc\r\n", LineEndings},

		{"exact quote only", "a \"x\" b \u201cx\u201d", `"x"`, `"y"`, false, "a \"y\" b \u201cx\u201d", Exact},
		{"curly in the file", "say \u201chi\u201d\n", `say "hi"`, `say "ho" and "hey"`, false, "say \u201cho\u201d and \u201chey\u201d\n", Quotes},
		{"apostrophe", "it\u2019s x\n", "it's x", "it's y, isn't it", false, "it\u2019s y, isn\u2019t it\n", Quotes},
		{"straight in the file", "say \"hi\"\n", "say \u201chi\u201d", "say \u201cho\u201d", false, "say \"ho\"\n", Quotes},
		{"quotes are the edit", "it's\n", "it's", "it\u2019s", false, "it\u2019s\n", Exact},
		{"lines not changed keep their own quotes", "\u201ca\" \n b\n", "\"a\" \n b", "\"a\" \n c", false, "\u201ca\" \n c\n", Quotes},
		{"part of a line keeps its own quotes", "f(\u201ca\", 1)\n", `f("a", 1)`, `f("a", 2)`, false, "f(\u201ca\", 2)\n", Quotes},
		{"kind not in the region stays as typed", "\u201cx\u201d\n", `"x"`, `'x'`, false, "'x'\n", Quotes},
		{"quotes and endings", "\u201ca\u201d\r\nb\r\n", "\"a\"\nb", "\"c\"\nb", false, "\u201cc\u201d\r\nb\r\n", Quotes | LineEndings},

		{"line numbers", "one\n\ttwo\nthree\n", "     1→one\n     2→\ttwo", "     1→one\n     2→\tTWO", false, "one\n\tTWO\nthree\n", LineNumbers},
		{"line numbers in old only", "one\ntwo\n", "2→two", "TWO", false, "one\nTWO\n", LineNumbers},
		{"line numbers and CRLF", "one\r\ntwo\r\n", "     1→one\n     2→two\n", "1→one\n2→2\n", false, "one\r\n2\r\n", LineNumbers | LineEndings},
		{"line numbers before tabs", "one\n\ttwo\nthree\n", "     1\tone\n     2\t\ttwo", "     1\tone\n     2\t\tTWO", false, "one\n\tTWO\nthree\n", LineNumbers},
		{"one line with its number and a tab", "one\ntwo\n", "2\ttwo", "TWO", false, "one\nTWO\n", LineNumbers},
		{"a table as it stands", "7\ta\n8\tb\n", "7\ta", "7\tc", false, "7\tc\n8\tb\n", Exact},
		{"text that looks like a prefix", "1→one\n", "1→one", "1→two", false, "1→two\n", Exact},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, how, err := edit(tt.file, tt.old, tt.new, tt.all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if how != tt.how {
				t.Errorf("how = %b, want %b", how, tt.how)
			}
			if (how.Note() == "") != (how == Exact) {
				t.Errorf("note %q for %b", how.Note(), how)
			}
		})
	}
}

func TestEditRefused(t *testing.T) {
	tests := []struct {
		name, file, old, new string
		all                  bool
		want                 string // part of the message
	}{
		{"twice", "a\nb\na\n", "a", "x", false, "occurs 2 times, on lines 1, 3"},
		{"overlapping", "aaa", "aa", "x", false, "occurs 2 times"},
		{"twice but for the endings", "x\r\ny\r\nz\nx\ny\n", "x\ny", "w", false, "occurs 2 times, on lines 1, 4 (LF and CRLF"},
		{"twice but for the endings, the other way", "x\ny\nz\r\nx\r\ny\n", "x\ny\n", "w", false, "occurs 2 times, on lines 1, 4"},
		{"twice but for the last ending", "x\r\nz\nx\n", "x\n", "w", false, "occurs 2 times, on lines 1, 3"},
		{"thrice but for some endings", "x\r\ny\nx\ny\nx\ny\r\n", "x\ny\n", "w", false, "occurs 3 times"},
		{"twice but for the endings, with numbers", "x\r\ny\r\nz\nx\ny\n", "     1→x\n     2→y", "w", false, "without its line number prefixes"},
		{"at the byte order mark and within", "\xef\xbb\xbfa\n\ufeffa\n", "\ufeffa", "x", false, "occurs 2 times, on lines 1, 2"},
		{"twice by quotes", "\u201cx\u201d \u201cx\u201d", `"x"`, "y", true, "curly and straight"},
		{"a table is not numbered", "a\nb\n", "1\ta\n3\tb", "x", false, "not found"},
		{"one tab, one arrow", "a\nb\n", "1\ta\nb", "x", false, "not found"},
		{"twice by a prefix with a tab", "x\nx\n", "1\tx", "y", true, "occurs 2 times"},
		{"another row of a table", "7\ta\n8\tb\n", "8\ta", "8\tc", false, "not found"},
		{"twice by prefix", "x\nx\n", "1→x", "y", true, "occurs 2 times"},
		{"empty", "a", "", "b", false, "old_string is empty"},
		{"no change", "it\u2019s\n", "it's", "it\u2019s", false, "would change nothing"},
		{"same", "a", "a", "a", false, "would change nothing"},
		{"one line without prefix", "a\nb\n", "1→a\nb", "x", false, "not found"},
		{"unmappable", "caf\xe9 na\xefve\n", "caf", "日本", false, `windows-1252, which has no character '日' (U+65E5)`},
		{"byte order mark of another line", "\xef\xbb\xbfa\nb\n", "\ufeffb", "x", false, "not found"},
		{"byte order mark that the file has not", "a\nb\n", "\ufeffa", "x", false, "not found"},
		{"byte order mark to take away", "\xef\xbb\xbfa\n", "\ufeffa", "a", false, "not part of its text"},
		{"many", strings.Repeat("x\n", 100), "x", "y", false, "19, 20, …"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := edit(tt.file, tt.old, tt.new, tt.all)
			if err == nil {
				t.Fatalf("edited to %q", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	file := "package x\n\nfunc a() {\n\treturn 1\n}\n\nfunc b() {\n\tif x {\n\t\treturn 2\n\t}\n}\n"
	tests := []struct {
		name, old   string
		first, last int
		reason      string
		region      string
	}{
		{"spaces for tabs", "func b() {\n    if x {\n        return 2\n", 7, 9, "only the indentation differs: tabs in the file, spaces in old_string",
			"      7→func b() {\n-      →····if x {\n+     8→⇥if x {\n        ^ differs from here\n-      →········return 2\n+     9→⇥⇥return 2\n        ^ differs from here\n"},
		{"trailing space", "return 1 \n}\n\nfunc b", 4, 7, "", ""},
		{"blank at the end", "func a() { \n\treturn 1\n", 3, 4, "only whitespace at the ends of lines differs", "-      →func a() {·\n+     3→func a() {\n                  ^ differs from here\n      4→\treturn 1\n"},
		{"case", "FUNC A() {\n\tRETURN 1", 3, 4, "only upper and lower case differ", ""},
		{"no-break space", "func\u00a0a() {\n", 3, 3, "only whitespace differs", "-      →func<U+00A0>a() {\n+     3→func a() {\n            ^ differs from here\n"},
		{"zero width", "func a()\u200b {\n", 3, 3, "only invisible or look-alike characters differ", ""},
		{"accents in one character", "// \u00e9t\u00e9 caf\u00e9\n", 12, 12, "only invisible or look-alike characters differ", "-      →// été café\n+    12→// e<U+0301>te<U+0301> cafe<U+0301>\n           ^ differs from here\n"},
		{"a word", "func b() {\n\tif y {\n", 7, 8, "", "      7→func b() {\n-      →⇥if y {\n+     8→⇥if x {\n            ^ differs from here\n"},
		{"a line too few", "func b() {\n\tif x {\n\t}\n}\n", 7, 11, "", "      7→func b() {\n      8→\tif x {\n+     9→⇥⇥return 2\n     10→\t}\n     11→}\n"},
		{"a line too many", "func b() {\n\tx := 1\n\tif x {\n\t\treturn 2\n", 7, 9, "", "      7→func b() {\n-      →⇥x := 1\n      8→\tif x {\n      9→\t\treturn 2\n"},
		{"line numbers", "     8→\tif y {\n     9→\t\treturn 2\n", 8, 9, "", ""},
		{"nothing alike", "SELECT id FROM customers", 0, 0, "", ""},
		{"escaped newlines", `if x {\n\t\treturn 2`, 8, 9, unescaped[0].reason, "      8→\tif x {\n      9→\t\treturn 2\n"},
		{"escaped quotes", `s := \"q & r\"`, 13, 13, unescaped[0].reason, "     13→s := \"q & r\" &lt;p&gt;\n"},
		{"entities for characters", "&quot;q &amp; r&quot;", 13, 13, unescaped[1].reason, ""},
		{"characters for entities", "<p>", 13, 13, unescaped[2].reason, ""},
	}
	file += "// e\u0301te\u0301 cafe\u0301\ns := \"q & r\" &lt;p&gt;\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := edit(file, tt.old, "zzz", false)
			var e *NotFoundError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.First != tt.first || e.Last != tt.last {
				t.Errorf("lines %d-%d, want %d-%d\n%v", e.First, e.Last, tt.first, tt.last, err)
			}
			if tt.reason != "" && e.Reason != tt.reason {
				t.Errorf("reason %q, want %q", e.Reason, tt.reason)
			}
			if tt.region != "" {
				if d := cmp.Diff(tt.region, e.Region); d != "" {
					t.Errorf("region (-want +got)\n%s", d)
				}
			}
		})
	}
}
