package clients

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// A format reads and edits files of one format. Bodies have no byte order mark. A path consists of the container, the
// name of the server and, for set and remove, possibly a key of its entry; or it is the path of a setting, with at
// least two keys.
type format interface {
	// decode reads a body; an empty one is an empty object. Its errors have the line and the column.
	decode(body []byte) (map[string]any, error)
	// set writes the value at path, and creates the objects above it.
	set(body []byte, path []string, value any) ([]byte, error)
	// remove removes the member at path, which must exist.
	remove(body []byte, path []string) ([]byte, error)
}

// A positionError is an error with its position in a file.
type positionError struct {
	line, column int
	message      string
}

func (e *positionError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.line, e.column, e.message)
}

// at returns a positionError for an offset.
func at(body []byte, offset int, format string, args ...any) error {
	before := body[:min(max(offset, 0), len(body))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:]))) + 1
	return &positionError{line, column, fmt.Sprintf(format, args...)}
}

// errByHand is the error of an edit to a file whose style does not allow a safe edit.
var errByHand = errors.New("it is written in a way that cannot be edited safely")

func byHand(why string, args ...any) error {
	return fmt.Errorf("%w (%s)", errByHand, fmt.Sprintf(why, args...))
}

// A splice replaces the bytes from start to end.
type splice struct {
	start, end int
	text       string
}

// apply makes splices, which are in order and do not overlap. Their line breaks become those of body.
func apply(body []byte, splices ...splice) []byte {
	eol := "\n"
	if i := bytes.IndexByte(body, '\n'); i > 0 && body[i-1] == '\r' {
		eol = "\r\n"
	}
	var out bytes.Buffer
	done := 0
	for _, s := range splices {
		out.Write(body[done:s.start])
		out.WriteString(strings.ReplaceAll(s.text, "\n", eol))
		done = s.end
	}
	out.Write(body[done:])
	return out.Bytes()
}

// lineStart returns the offset at which the line with offset begins.
func lineStart(body []byte, offset int) int {
	return bytes.LastIndexByte(body[:offset], '\n') + 1
}

// lineEnd returns the offset after the line with offset, including its line break.
func lineEnd(body []byte, offset int) int {
	if i := bytes.IndexByte(body[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(body)
}
