package shell

import "testing"

func FuzzParseReport(f *testing.F) {
	for _, s := range []string{"/usr\n", "\n", "", "/a\nb\n", "bash: line 1: cd: /x: Permission denied\n!\n", "!\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := parseReport(s)
		if w.dir != "" && (w.dir[0] != '/' || w.gone || w.refused != "") {
			t.Errorf("%q: %+v", s, w)
		}
	})
}
