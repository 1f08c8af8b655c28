package document

import "testing"

func TestPlain(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain é 世界\t\n", "plain é 世界\t\n"},
		{"\x1b[0;31mValueError\x1b[0m: bad", "ValueError: bad"},
		{"\x1b[38;2;1;2;3mx\x1b[K", "x"},
		{"\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x07", "link"},
		{"\x1b]0;title without an end", "0;title without an end"},
		{"\x1b(Bx\x1b7\x1b", "x"},
		{"1%\r50%\r100%\n", "100%\n"},
		{"a\r\nb\r\n", "a\nb\n"},
		{"done\r", "done"},
		{"\x1b[32m1%\x1b[0m\r\x1b[32m2%\x1b[0m", "2%"},
		{"bell\a, C1\u009b, DEL\x7f", "bell, C1, DEL"},
	}
	for _, tt := range tests {
		if got := plain(tt.in); got != tt.want {
			t.Errorf("plain(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
