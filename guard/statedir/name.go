package statedir

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// NameText returns a text for JSON from which [TextName] gets the name of a file back. A JSON string cannot hold a name
// that is not UTF-8.
func NameText(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}

// TextName is the opposite of [NameText].
func TextName(text string) (name string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return text, nil
	}
	return strconv.Unquote(text)
}
