package main

import "testing"

func TestParseForwarding(t *testing.T) {
	for text, want := range map[string]forwarding{
		"5173": {5173, 5173}, "8080:5173": {8080, 5173}, "8080:8080": {8080, 8080},
		"": {}, "0": {}, "x": {}, "1:": {}, ":1": {}, "1:2:3": {}, "65536": {}, "-1": {},
	} {
		got, err := parseForwarding(text)
		if (err != nil) != (want == forwarding{}) || err == nil && got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
