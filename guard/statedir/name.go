package statedir

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// NameText returns a text for JSON from which [TextName] gets a name of a file back. JSON strings cannot hold names that
// are not UTF-8.
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
