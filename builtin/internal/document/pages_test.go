package document

import (
	"strings"
	"testing"
)

func TestParsePages(t *testing.T) {
	tests := []struct {
		in       string
		from, to int
		want     string // in the error
	}{
		{"", 1, 20, ""},
		{"3", 3, 3, ""},
		{"1-5", 1, 5, ""},
		{" 2 - 4 ", 2, 4, ""},
		{"7-", 7, 26, ""},
		{"1-20", 1, 20, ""},
		{"5-1", 0, 0, `write "1-5"`},
		{"1-21", 0, 0, `begin with "1-20"`},
		{"0", 0, 0, "counted from 1"},
		{"-3", 0, 0, "counted from 1"},
		{"all", 0, 0, "must be a page"},
		{"1,3", 0, 0, "must be a page"},
		{"1-2-3", 0, 0, "must be a page"},
		{"99999999999999999999", 0, 0, "must be a page"},
	}
	for _, tt := range tests {
		from, to, err := ParsePages(tt.in)
		if from != tt.from || to != tt.to || (err == nil) != (tt.want == "") || err != nil &&
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParsePages(%q) = %d, %d, %v; want %d, %d, %q", tt.in, from, to, err, tt.from, tt.to, tt.want)
		}
	}
}
