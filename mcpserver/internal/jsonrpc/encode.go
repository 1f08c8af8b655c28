package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// An Answer is the answer to a call that was answered without the library.
type Answer struct {
	ID     json.RawMessage // as it came
	Result *mcp.CallToolResult
}

// Encode is json.Marshal, which would itself scan and copy a long result once more only because that encodes itself.
func Encode(message any) ([]byte, error) {
	switch m := message.(type) {
	case Answer:
		return encodeResponse(m.ID, m.Result)
	case mcp.JSONRPCResponse:
		id, err := json.Marshal(m.ID)
		if err != nil {
			return nil, err
		}
		return encodeResponse(id, m.Result)
	}
	return json.Marshal(message)
}

func encodeResponse(id []byte, of any) ([]byte, error) {
	result, text, err := encodeResult(of)
	if err != nil {
		return nil, err
	}
	const head, mid = `{"jsonrpc":"2.0","id":`, `,"result":`
	line := lineOf(len(head) + len(id) + len(mid) + len(result) + len(text) + len(text)/16 + len("}\n"))
	line = append(append(append(line, head...), id...), mid...)
	if text != "" {
		line = appendEscaped(append(line, beforeText...), text)
		result = result[len(beforeText):]
	}
	return append(append(line, result...), '}'), nil
}

// beforeText is what the library writes before the text of most results.
const beforeText = `{"content":[{"type":"text","text":"`

// encodeResult is a result as the library encodes it, but without the text after [beforeText], which is nearly all of a long
// one: the library goes over it byte by byte and copies it several times.
func encodeResult(result any) (encoded []byte, text string, err error) {
	m, ok := result.(json.Marshaler)
	if !ok {
		encoded, err = json.Marshal(result)
		return encoded, "", err
	}
	if r, ok := result.(*mcp.CallToolResult); ok && len(r.Content) > 0 {
		if encoded, err = encodePlain(r); encoded != nil || err != nil {
			return encoded, r.Content[0].(mcp.TextContent).Text, err
		}
		if content, ok := r.Content[0].(mcp.TextContent); ok {
			text, content.Text = content.Text, ""
			short := *r
			short.Content = append([]mcp.Content{content}, r.Content[1:]...)
			if encoded, err = short.MarshalJSON(); err != nil || bytes.HasPrefix(encoded, []byte(beforeText)) {
				return encoded, text, err
			}
		}
	}
	encoded, err = m.MarshalJSON()
	return encoded, "", err
}

// encodePlain is the result of [encodeResult] for what most results are, a text and perhaps a structure; nil for any other.
func encodePlain(r *mcp.CallToolResult) ([]byte, error) {
	content, ok := r.Content[0].(mcp.TextContent)
	if !ok || len(r.Content) > 1 || content.Annotations != nil || content.Meta != nil || content.Type != mcp.ContentTypeText ||
		r.Meta != nil || r.ResultType != "" || len(r.InputRequests) > 0 || r.RequestState != "" || len(r.RawStructuredContent) > 0 {
		return nil, nil
	}
	encoded := append(make([]byte, 0, 2*len(beforeText)), beforeText...)
	encoded = append(encoded, `"}]`...)
	if r.IsError {
		encoded = append(encoded, `,"isError":true`...)
	}
	if r.StructuredContent != nil {
		structured, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return nil, err
		}
		encoded = append(append(encoded, `,"structuredContent":`...), structured...)
	}
	return append(encoded, '}'), nil
}

// appendEscaped appends a text as it is between the quotes of a JSON string. What is not valid UTF-8 becomes U+FFFD, and
// the two separators of Unicode that some clients take for the end of a line are escaped, as encoding/json does both.
func appendEscaped(dst []byte, text string) []byte {
	for {
		n := plain(text)
		dst = append(dst, text[:n]...)
		if text = text[n:]; text == "" {
			return dst
		}
		size := 1
		switch c := text[0]; {
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = appendRune(dst, rune(c))
		case strings.HasPrefix(text, "→"): // which Read puts after the number of each line
			dst, size = append(dst, "→"...), len("→")
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(text); r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
				dst = appendRune(dst, r)
			} else {
				dst = append(dst, text[:size]...)
			}
		}
		text = text[size:]
	}
}

// appendRune appends the escape of a character.
func appendRune(dst []byte, c rune) []byte {
	switch c {
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
}

// plain returns how many bytes at the beginning of a text are ASCII that needs no escape. It looks at eight at a time; what a
// subtraction borrows falses only bytes after the first that is found.
func plain(text string) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		found := (w | (w - ' '*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) & (utf8.RuneSelf * ones)
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}
