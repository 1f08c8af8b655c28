package text

import (
	"fmt"
	"strings"
)

// encode returns s in the charset. Encoders map some characters to a code
// that means another one (the yen sign of Shift-JIS is a backslash), so the
// result is read back before it is trusted.
func (cs *charset) encode(s string) ([]byte, error) {
	if cs.enc == nil {
		return []byte(s), nil
	}
	if out, ok := cs.roundTrip(s); ok {
		return out, nil
	}
	for _, r := range s {
		if _, ok := cs.roundTrip(string(r)); !ok {
			return nil, &UnmappableError{Char: r, Charset: cs.name}
		}
	}
	return nil, fmt.Errorf("the text cannot be written in %s; nothing was written", cs.name)
}

func (cs *charset) roundTrip(s string) ([]byte, bool) {
	out, err := cs.enc.NewEncoder().String(s)
	if err != nil {
		return nil, false
	}
	back, err := cs.enc.NewDecoder().String(out)
	return []byte(out), err == nil && back == s
}

const bomChar = "\ufeff"

// Encode returns the bytes of content for writing over the file like: in its charset, with its byte order mark and
// line endings, unless content has a mark or carriage returns itself. The notes say what of the file was kept that
// content did not have. For a new file like is nil, and content is encoded as UTF-8 without changes. The error is an
// [*UnmappableError].
func Encode(like *Text, content string) (raw []byte, notes []string, err error) {
	if like == nil || len(like.raw) == 0 || content == "" {
		return []byte(content), nil, nil
	}
	cs := like.charset
	body := strings.TrimPrefix(content, bomChar)
	marked := len(body) < len(content)
	if eol := like.eol.sequence(); eol != "\n" && strings.Contains(body, "\n") && !strings.Contains(body, "\r") {
		body = strings.ReplaceAll(body, "\n", eol)
		notes = append(notes, "kept the line endings of the file ("+like.eol.String()+")")
	}
	out, err := cs.encode(body)
	if err != nil {
		return nil, nil, err
	}
	if cs.enc != nil && string(out) != body {
		notes = append(notes, "kept the encoding of the file ("+cs.name+")")
	}
	if like.bom == 0 && !(marked && cs.bom != "") {
		return out, notes, nil
	}
	if !marked {
		notes = append(notes, "kept the byte order mark of the file")
	}
	return append([]byte(cs.bom), out...), notes, nil
}
