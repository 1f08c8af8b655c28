package text

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// letters are n lines, each a letter.
func letters(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%c\n", 'a'+i)
	}
	return b.String()
}

func TestPlaces(t *testing.T) {
	tests := []struct {
		name, file, old, want string
	}{
		{"apart", letters(9) + letters(9), "e\n", "3→c 4→d 5→e 6→f 7→g … 12→c 13→d 14→e 15→f 16→g"},
		{"that share lines", letters(3) + letters(3), "b\n", "1→a 2→b 3→c 4→a 5→b 6→c"},
		{"at both ends, without a newline", "x\n" + letters(6) + "x", "x", "1→x 2→a 3→b … 6→e 7→f 8→x"},
		{"on one line", "x x\n" + letters(4), "x", "1→x x 2→a 3→b"},
		{"five of seven", strings.Repeat("x\na\nb\nc\nd\ne\n", 7), "x", "1→x 2→a 3→b … 5→d 6→e 7→x 8→a 9→b … 11→d 12→e 13→x 14→a 15→b … 17→d 18→e 19→x 20→a 21→b … 23→d 24→e 25→x 26→a 27→b"},
		{"of many lines", strings.Repeat(letters(12), 2), letters(12), "1→a 2→b 3→c … 10→j 11→k 12→l 13→a 14→b 15→c … 22→j 23→k 24→l"},
		{"CRLF", "a\r\nx\r\nx\r\n", "x", "1→a 2→x 3→x"},
		{"with a byte order mark", "\xef\xbb\xbfx\nx\n", "x", "1→x 2→x"},
		{"of long lines", "x" + strings.Repeat("y", 300) + "\nx\n", "x", "1→x" + strings.Repeat("y", 239) + "… [61 more characters on this line] 2→x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Find(Decode([]byte(test.file)), test.old, "new", false)
			var several *AmbiguousError
			if !errors.As(err, &several) {
				t.Fatalf("%v, want several places", err)
			}
			if got := oneLine(several.Places); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !strings.HasSuffix(err.Error(), ":\n"+several.Places) {
				t.Errorf("the error does not end in the places: %v", err)
			}
		})
	}
}

// oneLine joins shown lines without their indentation.
func oneLine(shown string) string {
	var all []string
	for line := range strings.Lines(shown) {
		all = append(all, strings.TrimSpace(line))
	}
	return strings.Join(all, " ")
}

func TestExcerpt(t *testing.T) {
	tests := []struct {
		name, file, old string
		want            Excerpt
	}{
		{"in the middle", letters(9), "e", Excerpt{"3→c 4→d 5→e 6→f 7→g", 3, 7, 4, []byte("c\nd\ne\nf\ng\n")}},
		{"at the start", letters(4), "a\n", Excerpt{"1→a 2→b 3→c", 1, 3, 0, []byte("a\nb\nc\n")}},
		{"at the end, without a newline", "a\nb\nc\nd", "d", Excerpt{"2→b 3→c 4→d", 2, 4, 2, []byte("b\nc\nd")}},
		{"behind a byte order mark", "\xef\xbb\xbfa\nb\n", "b", Excerpt{"1→a 2→b", 1, 2, 3, []byte("a\nb\n")}},
		{"of UTF-16", "\xff\xfea\x00\n\x00b\x00\n\x00", "b", Excerpt{"1→a 2→b", 1, 2, 2, []byte("a\x00\n\x00b\x00\n\x00")}},
		{"of many lines", letters(20), letters(19)[4:36], Excerpt{"1→a 2→b 3→c 4→d 5→e … 16→p 17→q 18→r 19→s 20→t", 1, 20, 0, []byte(letters(20))}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			content := Decode([]byte(test.file))
			m, err := Find(content, test.old, "new", false)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := content.Excerpt(m.Spans[0])
			got.Shown = oneLine(got.Shown)
			if !ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, ok, test.want)
			}
		})
	}
}
