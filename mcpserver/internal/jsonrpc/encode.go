package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// Encode encodes a message as json.Marshal does. It is faster for results, which implement json.Marshaler: json.Marshal
// scans and copies what they return.
func Encode(message any) ([]byte, error) {
	m, ok := message.(mcp.JSONRPCResponse)
	if !ok {
		return json.Marshal(message)
	}
	id, err := json.Marshal(m.ID)
	if err != nil {
		return nil, err
	}
	result, text, err := encodeResult(m.Result)
	if err != nil {
		return nil, err
	}
	const head, mid = `{"jsonrpc":"2.0","id":`, `,"result":`
	line := make([]byte, 0, len(head)+len(id)+len(mid)+len(result)+len(text)+len(text)/16+len("}\n"))
	line = append(append(append(line, head...), id...), mid...)
	if text != "" {
		line = appendEscaped(append(line, beforeText...), text)
		result = result[len(beforeText):]
	}
	return append(append(line, result...), '}'), nil
}

// beforeText is what precedes the text of most results.
const beforeText = `{"content":[{"type":"text","text":"`

// encodeResult encodes a result as the library does, but returns the text that belongs after [beforeText] separately.
// The library escapes text byte by byte and copies it several times.
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

// encodePlain is encodeResult for a result with one text and optional structured content. It returns nil for others.
func encodePlain(r *mcp.CallToolResult) ([]byte, error) {
	content, ok := r.Content[0].(mcp.TextContent)
	if !ok || len(r.Content) > 1 || content.Annotations != nil || content.Meta != nil ||
		content.Type != mcp.ContentTypeText ||
		r.Meta != nil || r.ResultType != "" || len(r.InputRequests) > 0 || r.RequestState != "" ||
		len(r.RawStructuredContent) > 0 {
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

// appendEscaped appends text as the content of a JSON string. As encoding/json does, it replaces invalid UTF-8 by
// U+FFFD and escapes U+2028 and U+2029, which some clients take for line ends.
func appendEscaped(dst []byte, text string) []byte {
	for {
		n := unescapedPrefix(text)
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
			dst = appendEscape(dst, rune(c))
		case strings.HasPrefix(text, "→"): // frequent: follows each line number in the result of Read
			dst, size = append(dst, "→"...), len("→")
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(text); r == utf8.RuneError && size == 1 || r == '\u2028' ||
				r == '\u2029' {
				dst = appendEscape(dst, r)
			} else {
				dst = append(dst, text[:size]...)
			}
		}
		text = text[size:]
	}
}

// appendEscape appends the escape sequence of a character.
func appendEscape(dst []byte, c rune) []byte {
	switch c {
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
}

// unescapedPrefix returns the length of the longest prefix that is ASCII and needs no escaping. It examines eight
// bytes at a time. A borrow of a subtraction changes only bytes after the first match.
func unescapedPrefix(text string) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
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
