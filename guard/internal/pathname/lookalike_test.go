package pathname

import "testing"

func TestDisguised(t *testing.T) {
	for s, plain := range map[string]string{
		"\u200b.env": ".env", ".e\u200bnv": ".env", ".env\ufeff": ".env", ".env\u00ad": ".env", "\u202e.env": ".env", "a\u00a0b": "a b",
		".\u0435nv": ".env", "R\u0435ad": "Read", "\uff32ead": "Read", "\U0001d5e5ead": "Read", "\u2024env": ".env", "Re\u2060ad": "Read",
		"B\u0430sh": "Bash", "Writ\u03b5": "Write", "r\uff4d": "rm", ".env\ufe0f": ".env", "rm\rx": "rm x", ".env\u3164": ".env", "x\U000e0041": "x",
	} {
		if _, ok := Disguised(s); !ok || Plain(s) != plain {
			t.Errorf("%+q: disguised %v, plain %+q", s, ok, Plain(s))
		}
	}
	for _, s := range []string{
		".env", "src/**/*.go", "a b.txt", "отчёт-v2.pdf", "план_2024.docx", "данные.env", "資料.pdf", "設計書（最終）.xlsx", "Ａ棟", "naïve.txt", "Müller/ß.txt",
		"👨\u200d👩\u200d👧.txt", "❤\ufe0f/a", "می\u200cخواهم.txt", "Δx.csv", "μTorrent", "日本語/メモ.md", "e\u0301t\u00e9", "ελληνικά.txt", "한국어.txt", "co₂.csv",
	} {
		if r, ok := Disguised(s); ok {
			t.Errorf("%+q: %+q is taken for a disguise", s, r)
		}
	}
}
