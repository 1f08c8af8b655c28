package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncode(t *testing.T) {
	tests := []struct {
		name, file, content string
		want                string
		notes               []string
	}{
		{"LF", "a\n", "b\n", "b\n", nil},
		{"empty file", "", "b\r\n", "b\r\n", nil},
		{"CRLF kept", "a\r\n", "b\nc\n", "b\r\nc\r\n", []string{"kept the line endings of the file (CRLF)"}},
		{"content has its own", "a\r\n", "b\nc\r\n", "b\nc\r\n", nil},
		{"CRLF over LF", "a\n", "b\r\n", "b\r\n", nil},
		{"mixed becomes LF", "a\r\nb\n", "c\n", "c\n", nil},
		{"mark kept", "\xef\xbb\xbfa\n", "b\n", "\xef\xbb\xbfb\n", []string{"kept the byte order mark of the file"}},
		{"mark of the content", "a\n", "\ufeffb\n", "\xef\xbb\xbfb\n", nil},
		{"mark in both", "\xef\xbb\xbfa\n", "\ufeffb\n", "\xef\xbb\xbfb\n", nil},
		{"nothing", "\xef\xbb\xbfa\n", "", "", nil},
		{"GBK", string(encoded(t, "gbk", chinese)), "加法\n", string(encoded(t, "gbk", "加法\n")), []string{"kept the encoding of the file (gbk)"}},
		{"GBK, ASCII content", string(encoded(t, "gbk", chinese)), "x\n", "x\n", nil},
		{"UTF-16", "\xff\xfea\x00\r\x00\n\x00", "é\n", "\xff\xfe\xe9\x00\r\x00\n\x00",
			[]string{"kept the line endings of the file (CRLF)", "kept the encoding of the file (utf-16le)",
				"kept the byte order mark of the file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := Encode(Decode([]byte(tt.file)), tt.content)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if d := cmp.Diff(tt.notes, notes); d != "" {
				t.Errorf("notes (-want +got)\n%s", d)
			}
		})
	}
	if _, _, err := Encode(Decode(encoded(t, "gbk", chinese)), "ok 😀"); err == nil ||
		!strings.Contains(err.Error(), "gbk, which has no character '😀'") {
		t.Errorf("error %v", err)
	}
	if got, notes, err := Encode(nil, "é\r\n"); string(got) != "é\r\n" || notes != nil || err != nil {
		t.Errorf("new file: %q %v %v", got, notes, err)
	}
	// The yen sign would become a backslash.
	if got, _, err := Encode(Decode(encoded(t, "shift_jis", japaneseText)), "¥"); err == nil {
		t.Errorf("wrote %q for a yen sign", got)
	}
}
