package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCanComeBack(t *testing.T) {
	for token, want := range map[string]bool{
		`"t"`: true, `""`: true, `7`: true, `-3`: true, `0`: true, `9007199254740991`: true, `1e3`: true,
		`null`: false, `true`: false, `1.5`: false, `{"a":1}`: false, `[1]`: false, `9007199254740993`: false, `1e300`: false,
		`"\ud800"`: false, `"\ud83d\ude00"`: true, "\"\u00e9\"": true,
		`"` + strings.Repeat("x", maxProgressToken) + `"`: true, `"` + strings.Repeat("x", maxProgressToken+1) + `"`: false,
	} {
		var decoded any
		if err := json.Unmarshal([]byte(token), &decoded); err != nil {
			t.Fatal(err)
		}
		if got := canComeBack(decoded); got != want {
			t.Errorf("%.40s: %t, want %t", token, got, want)
		}
	}
}
