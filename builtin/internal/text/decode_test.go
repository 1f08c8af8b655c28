package text

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// encoded returns s in the named charset, with a byte order mark if asked.
func encoded(tb testing.TB, name, s string) []byte {
	tb.Helper()
	cs := charsetNamed(name)
	if name == "utf-8" {
		cs = utf8Charset()
	}
	if cs == nil {
		tb.Fatalf("no charset %q", name)
	}
	out, err := cs.encode(s)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func allCharsets() []*charset {
	all := []*charset{utf8Charset(), utf16Charset(false), utf16Charset(true), utf32Charset(false),
		utf32Charset(true), latin1()}
	for _, name := range []string{"gbk", "big5", "shift_jis", "euc-jp", "euc-kr", "koi8-r", "ibm866", "tis-620",
		"windows-1250", "iso-8859-2", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256", "windows-1257", "iso-8859-5"} {
		all = append(all, legacy(name)...)
	}
	return all
}

const (
	chinese      = "// 计算两个数的和，返回结果。如果参数为空则返回零。\nfunc add() {}\n"
	trad         = "// 計算兩個數字的總和，傳回結果。如果參數為空則傳回零。\nfunc add() {}\n"
	japaneseText = "// 二つの数値の合計を計算して、結果を返します。引数が空の場合はゼロです。\nfunc add() {}\n"
	koreanText   = "// 두 숫자의 합을 계산하여 결과를 반환합니다. 인수가 비어 있으면 영을 반환합니다.\nfunc add() {}\n"
	russian      = "// Вычисляет сумму двух чисел и возвращает результат вызывающему.\nfunc add() {}\n"
	mixedRussian = "Это русский текст. token=beta\nВторая строка, съешь ещё этих мягких французских булок.\n"
	german       = "// Gibt die Summe zurück, außer für größere Zahlen: dafür gäbe es Überläufe.\nfunc add() {}\n"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name    string
		raw     []byte
		charset string
		bom     bool
		want    string
	}{
		{"empty", nil, "utf-8", false, ""},
		{"ASCII", []byte("a\n"), "utf-8", false, "a\n"},
		{"UTF-8", []byte(chinese), "utf-8", false, chinese},
		{"UTF-8 with mark", []byte("\xef\xbb\xbfa"), "utf-8", true, "a"},
		{"only a mark", []byte("\xef\xbb\xbf"), "utf-8", true, ""},
		{"damaged UTF-8", []byte(russian + "\xff"), "utf-8", false, russian + "\xff"},
		{"UTF-16LE with mark", append([]byte("\xff\xfe"), encoded(t, "utf-16le", german)...), "utf-16le", true, german},
		{"UTF-16BE with mark", append([]byte("\xfe\xff"), encoded(t, "utf-16be", german)...), "utf-16be", true, german},
		{"UTF-16LE", encoded(t, "utf-16le", german), "utf-16le", false, german},
		{"UTF-16BE", encoded(t, "utf-16be", german), "utf-16be", false, german},
		{"UTF-16LE, half a unit at the end", append(encoded(t, "utf-16le", "ab\n"), 'x'), "utf-16le", false, "ab\n\ufffd"},
		{"UTF-32LE with mark", append([]byte("\xff\xfe\x00\x00"), encoded(t, "utf-32le", german)...), "utf-32le", true, german},
		{"UTF-32LE", encoded(t, "utf-32le", german), "utf-32le", false, german},
		{"UTF-32BE", encoded(t, "utf-32be", chinese), "utf-32be", false, chinese},
		{"UTF-32LE, half a unit at the end", append(encoded(t, "utf-32le", "ab\n"), 'x'), "utf-32le", false, "ab\n\ufffd"},
		{"GBK", encoded(t, "gbk", chinese), "gbk", false, chinese},
		{"GB18030", encoded(t, "gb18030", chinese+"𠀀\n"), "gb18030", false, chinese + "𠀀\n"},
		{"Big5", encoded(t, "big5", trad), "big5", false, trad},
		{"Shift-JIS", encoded(t, "shift_jis", japaneseText), "shift_jis", false, japaneseText},
		{"Shift-JIS of a short comment", encoded(t, "shift_jis", "int a; // エラー処理\n"), "shift_jis", false, "int a; // エラー処理\n"},
		{"Shift-JIS of a few words", encoded(t, "shift_jis", "// 関数の戻り値を確認する\n"), "shift_jis", false, "// 関数の戻り値を確認する\n"},
		{"letters that would be Japanese each with the next", []byte("le\x9dme na \x8demo \x9dava\n"), "windows-1250", false, "leťme na Ťemo ťava\n"},
		{"EUC-JP", encoded(t, "euc-jp", japaneseText), "euc-jp", false, japaneseText},
		{"EUC-KR", encoded(t, "euc-kr", koreanText), "euc-kr", false, koreanText},
		{"windows-1251", encoded(t, "windows-1251", russian), "windows-1251", false, russian},
		{"Russian between Latin words", encoded(t, "windows-1251", mixedRussian), "windows-1251", false, mixedRussian}, // for chardet that of old Macs
		{"KOI8-R", encoded(t, "koi8-r", russian), "koi8-r", false, russian},
		{"one accent", []byte("caf\xe9\n"), "windows-1252", false, "café\n"},
		{"German", encoded(t, "windows-1252", "Grüße aus München, schöne Straße\nÄÖÜ\n"), "windows-1252", false, "Grüße aus München, schöne Straße\nÄÖÜ\n"},
		{"Turkish", encoded(t, "windows-1254", "// Sayıların toplamını döndürür, değer yoksa sıfır; şüphesiz güzel bir gün.\n"), "windows-1254", false, "// Sayıların toplamını döndürür, değer yoksa sıfır; şüphesiz güzel bir gün.\n"},
		{"Icelandic", encoded(t, "windows-1252", "// Þetta fall skilar summu talnanna, eða núlli ef ekkert er gefið; það er ágætt.\n"), "windows-1252", false, "// Þetta fall skilar summu talnanna, eða núlli ef ekkert er gefið; það er ágætt.\n"},
		{"Windows quotes", []byte("\x93hi\x94 na\xefve\n"), "windows-1252", false, "“hi” naïve\n"},
		{"a byte that windows-1252 lacks", []byte("na\xefve \x81\n"), "iso-8859-1", false, "naïve \u0081\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Decode(tt.raw)
			if got.charset.name != tt.charset || got.bom > 0 != tt.bom || got.String() != tt.want {
				t.Errorf("got %s, mark %v, %q\nwant %s, mark %v, %q", got.charset.name, got.bom > 0, got.String(),
					tt.charset, tt.bom, tt.want)
			}
			if IsBinary(tt.raw) {
				t.Error("taken for binary")
			}
		})
	}
}

// What is known of a file decides what a few of its characters would not tell.
func TestDecodeAs(t *testing.T) {
	for _, tt := range []struct {
		name, raw, known, want, str string
	}{
		{"short", "\xe9", "windows-1252", "windows-1252", "é"},
		{"UTF-8 by chance", "\xc3\xa9", "windows-1252", "windows-1252", "Ã©"},
		{"nothing is known", "\xc3\xa9", "", "utf-8", "é"},
		{"of no use", "\xc3\xa9", "utf-8", "utf-8", "é"},
		{"no such charset", "\xc3\xa9", "ebcdic", "utf-8", "é"},
		{"a mark speaks against it", "\xef\xbb\xbfa", "windows-1252", "utf-8", "a"},
		{"bytes speak against it", "\xc3\xa9\xff", "gbk", "", ""},
		{"UTF-16", "\xe9\x00", "utf-16le", "utf-16le", "é"},
		{"half of a unit", "abc", "utf-16le", "utf-8", "abc"},
		{"ASCII", "a", "koi8-r", "koi8-r", "a"},
	} {
		got := DecodeAs([]byte(tt.raw), tt.known)
		if got == nil || tt.want != "" && (got.Charset() != tt.want || got.String() != tt.str) ||
			got.Charset() == "gbk" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := DecodeAs([]byte("a\x00\x01\x02"), ""); got != nil {
		t.Errorf("binary: %+v", got)
	}
	for _, cs := range allCharsets() {
		if got := charsetNamed(cs.name); cs.enc != nil && (got == nil || got.enc != cs.enc || got.unit != cs.unit) {
			t.Errorf("%s: %+v", cs.name, got)
		}
	}
}

// A page is decoded as what is known of its file, although it may end in the middle of a character.
func TestKnownCharsetOfPage(t *testing.T) {
	const short = "\xc3\xa9\n"
	for name, raw := range map[string]string{
		"short": short, "long": strings.Repeat(short, readLen), "ends in half a character": strings.Repeat("a", readLen-1) + "\n" + short,
	} {
		o := PageOptions{Offset: strings.Count(raw, "\n"), Charset: "windows-1252"}
		page, err := ReadPage(strings.NewReader(raw), o)
		if err != nil || page.Charset != "windows-1252" || page.Lines[0].Text != "Ã©" {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
		if shown, page := NumberPage([]byte(raw), o, 2000); page.Charset != "windows-1252" ||
			!strings.Contains(shown, "→Ã©\n") {
			t.Errorf("%s in memory: %+v, %q", name, page, shown)
		}
	}
}

// Texts of Central Europe and the Baltic, which statistics take for Western ones, are known by their letters, and those of the West
// with a name or a sign among them are not taken for them.
func TestDetectEastern(t *testing.T) {
	for _, tt := range []struct{ text, charsets string }{
		{"Zażółć gęślą jaźń. Ten plik zawiera polski tekst, który służy do sprawdzenia.\n", "windows-1250 iso-8859-2"},
		{"// zwraca długość\n", "windows-1250 iso-8859-2"},
		{"Příliš žluťoučký kůň úpěl ďábelské ódy. Tento soubor obsahuje český text.\n", "windows-1250 iso-8859-2"},
		{"Vypĺňať prázdne reťazce a zistiť, či súbor obsahuje slovenský text.\n", "windows-1250 iso-8859-2"},
		{"Čovjek je došao kući, šišmiš leti, žaba skače, đak šuti.\n", "windows-1250 iso-8859-2"},
		{"„Árvíztűrő” tükörfúrógép – ez a fájl több fűszeres, hűvös, gyűrött szöveget őriz erről az időről.\n", "windows-1250"},
		{"Ąžuolas, ėjo šuo, žąsis, įdomus, ūkis, čia yra lietuviškas tekstas.\n", "windows-1257"},
		{"Déjà vu, garçon, où est la forêt, ça suffit, être âgé, naïf, un œuf de l’œuvre de Dušan.\n", "windows-1252"},
		{"La « città » è più così, perché l’università di Žižek è là; 20 °C, n° 5, 3½ però.\n", "windows-1252"},
		{"El niño comió piñas mañana, ¿qué pasó? Información técnica ©2020, l·l, 1ª.\n", "windows-1252"},
		{"Não há informação, a ação é rápida, você está lá.\n", "windows-1252"},
		{"Räksmörgås på ön, får jag köpa några ägg, blåbærsyltetøy, überall größere Häuser.\n", "windows-1252"},
		{"Šesti õhtul läks külm öö üle, žürii ütles šokolaad.\n", "windows-1252"},
		{"Şu köşe yaz köşesi, şu köşe kış köşesi, çığlık, ağaç.\n", "windows-1254"},
	} {
		for _, name := range strings.Fields(tt.charsets) {
			raw := encoded(t, name, tt.text)
			if got := Decode(raw); got.Charset() != name && got.String() != tt.text {
				t.Errorf("%s of %q: %s, %q", name, tt.text, got.Charset(), got.String())
			}
		}
	}
}

func TestDetectLargeLegacy(t *testing.T) {
	// One comment among thousands of ASCII lines, and longer than a sample.
	code := strings.Repeat("int x = call(1, 2);\n", 20_000)
	got := Decode([]byte(code + string(encoded(t, "gbk", chinese)) + code))
	if got.charset.name != "gbk" || got.String() != code+chinese+code {
		t.Errorf("read as %s", got.charset.name)
	}
}

func TestEOL(t *testing.T) {
	tests := []struct {
		text string
		want EOL
		name string
	}{
		{"", None, "none"}, {"a", None, "none"}, {"a\nb", LF, "LF"}, {"a\r\nb\r\n", CRLF, "CRLF"}, {"a\rb", CR, "CR"},
		{"a\r\nb\n", Mixed, "mixed"}, {"a\rb\n", Mixed, "mixed"}, {"a\r\r\n", Mixed, "mixed"},
	}
	for _, tt := range tests {
		if got := Decode([]byte(tt.text)).eol; got != tt.want || got.String() != tt.name {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestIsBinary(t *testing.T) {
	noise := make([]byte, 4096)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(1 + r.IntN(255)) // without NUL
	}
	tests := []struct {
		name string
		raw  []byte
		want bool
	}{
		{"empty", nil, false},
		{"text", []byte("hello\n"), false},
		{"escapes", []byte("\x1b[31mred\x1b[0m\n"), false},
		{"ELF", []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00>\x00"), true},
		{"PNG", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), true},
		{"noise without NUL", noise, true},
		{"a letter and a NUL", []byte("a\x00b"), true},
		{"a NUL in text", []byte("text\x00text"), true},
		{"UTF-32LE without a mark", encoded(t, "utf-32le", "hi\n"), false},
		{"UTF-32BE without a mark", encoded(t, "utf-32be", chinese), false},
		{"one UTF-32 unit", []byte("a\x00\x00\x00"), true},
		{"32-bit numbers", []byte("\x41\x00\x00\x00\x02\x00\x00\x00\x43\x00\x00\x00"), true},
		{"beyond Unicode", []byte("\x41\x00\x00\x00\x00\x00\x11\x00"), true},
		{"numbers that are letters beyond ASCII", []byte("\x00\xff\x00\xff"), true},
		{"UTF-16 with some such", []byte("\x00h\x00\xe9\x00t\x00\xe9"), false},
		{"16-bit numbers", []byte("\x01\x00\x02\x00\x03\x00\x04\x00"), true},
		{"NUL behind the prefix", append(bytes.Repeat([]byte("a"), SniffLen), 0), false},
	}
	for _, tt := range tests {
		if got := IsBinary(tt.raw); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestUntouchedBytes edits random files in every charset and checks that the
// bytes before and after the edit are those of the file, also where they mean
// nothing in its charset, or nothing that encodes back to them.
func TestUntouchedBytes(t *testing.T) {
	samples := []string{"if x { return 1 }", "value", "x", "\ttab", ""}
	local := []string{"日本語", "中文", "été", "русский", "한국어", "ß"}
	endings := []string{"\n", "\r\n", "\r", "\n\n"}
	for _, cs := range allCharsets() {
		var words []string
		for _, w := range append(local, samples...) {
			if _, err := cs.encode(w); err == nil {
				words = append(words, w)
			}
		}
		t.Run(cs.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				side := func(label string) []byte {
					var b []byte
					for range rapid.IntRange(0, 12).Draw(rt, label) {
						b = append(b, encoded(rt2tb{t, rt}, cs.name, rapid.SampledFrom(words).Draw(rt, "word"))...)
						if cs.unit == 1 && rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
							b = append(b, rapid.SliceOfN(rapid.ByteRange(0x80, 0xff), 1, 3).Draw(rt, "bytes")...)
							b = append(b, ' ')
						}
						b = append(b, encoded(rt2tb{t, rt}, cs.name, rapid.SampledFrom(endings).Draw(rt, "ending"))...)
					}
					return b
				}
				before, after := side("before"), side("after")
				needle := encoded(rt2tb{t, rt}, cs.name, "the_needle")
				raw := slicesConcat(before, needle, after)
				replacement := rapid.SampledFrom(words).Draw(rt, "new") + "\nlast"
				text := decodeAs(bytes.Clone(raw), cs, 0)
				m, err := Find(text, "the_needle", replacement, false)
				if err != nil {
					rt.Fatal(err)
				}
				out, err := applied(text, m)
				if err != nil {
					return // refused: nothing is written
				}
				if !bytes.HasPrefix(out, before) || !bytes.HasSuffix(out, after) {
					rt.Fatalf("bytes beside the edit changed:\n%q\n%q", raw, out)
				}
				middle := string(out[len(before) : len(out)-len(after)])
				if want := string(encoded(rt2tb{t, rt}, cs.name, m.New[0])); middle != want {
					rt.Fatalf("wrote %q, want %q", middle, want)
				}
			})
		})
	}
}

// rt2tb lets helpers for testing.TB fail a rapid check.
type rt2tb struct {
	testing.TB
	rt *rapid.T
}

func (r rt2tb) Helper()                   {}
func (r rt2tb) Fatal(args ...any)         { r.rt.Fatal(args...) }
func (r rt2tb) Fatalf(f string, a ...any) { r.rt.Fatalf(f, a...) }

// applied is the whole content after an edit.
func applied(t *Text, m *Match) ([]byte, error) {
	pieces, err := Apply(t, m)
	return bytes.Join(pieces, nil), err
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestLinesNotChangedKeepTheirCodes edits inside a matched range: characters
// that have two codes keep the one they had.
func TestLinesNotChangedKeepTheirCodes(t *testing.T) {
	// 0x81BF and 0x879B are both ∩ in Shift-JIS; encoding gives 0x81BF.
	raw := string(encoded(t, "shift_jis", japaneseText)) + "A\x87\x9bB\nmiddle\n\x87\x9bC\x87\x9b\n"
	got, _, err := edit(raw, "A∩B\nmiddle\n∩C∩\n", "A∩B\nMIDDLE\n∩D∩\n", false)
	want := strings.NewReplacer("middle", "MIDDLE", "C", "D").Replace(raw)
	if err != nil || got != want {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
}

func TestRefusesToMergeBytes(t *testing.T) {
	// 0x81 begins a pair in GBK. Before " x" it stands alone; before "A" it
	// would swallow it.
	cs := legacy("gbk")[0]
	text := decodeAs([]byte("\xd6\xd0\x81 x\n"), cs, 0)
	m, err := Find(text, " x", "Ax", false)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Apply(text, m); err == nil {
		t.Errorf("wrote %q", out)
	}
}

func FuzzDecodeEdit(f *testing.F) {
	for _, s := range []string{chinese, german, japaneseText} {
		f.Add([]byte(s), "add", "sub")
	}
	f.Add(encoded(f, "gbk", chinese), "add", "新")
	f.Add(append([]byte("\xff\xfe"), encoded(f, "utf-16le", german)...), "add", "x\ny")
	f.Add([]byte("a\r\nb\rc\n\"x\" \u201cy\u201d"), "a\nb", "'q'")
	f.Fuzz(func(t *testing.T, raw []byte, old, new string) {
		text := Decode(bytes.Clone(raw))
		IsBinary(raw)
		s := text.String()
		var near mark
		for i := range s {
			if off, ok := text.rawOffset(i, &near); ok && (off < text.bom || off > len(raw)) {
				t.Fatalf("offset %d maps to %d of %d", i, off, len(raw))
			}
		}
		if off, ok := text.rawOffset(len(s), &mark{}); !ok || off != len(raw) {
			t.Fatalf("the end maps to %d of %d", off, len(raw))
		}
		if !utf8.ValidString(old) || !utf8.ValidString(new) {
			return // arguments come from JSON
		}
		m, err := Find(text, old, new, false)
		if err != nil {
			_ = err.Error()
			return
		}
		out, err := applied(text, m)
		if err != nil {
			return
		}
		if text.charset.enc == nil {
			if shared := bytes.Join(text.splice(m, 1), nil); !bytes.Equal(shared, out) {
				t.Fatalf("sharing gives %q, copying %q", shared, out)
			}
		}
		if got := text.With(bytes.Clone(out)).String(); got != m.result(s) {
			t.Fatalf("result reads %q, want %q", got, m.result(s))
		}
		want, whole := Diff("f", s, m.result(s), 3, 100)
		if diff, complete := m.Diff("f", text, 3, 100); diff != want || complete != whole {
			t.Fatalf("the diff of the match is\n%s\nnot\n%s", diff, want)
		}
	})
}

func FuzzFold(f *testing.F) {
	f.Add("a\r\nb\rc\u201cd\u2019", true)
	f.Fuzz(func(t *testing.T, s string, quotes bool) {
		folded := fold(s, quotes)
		offsets := make([]int, len(folded)+1)
		for i := range offsets {
			offsets[i] = i
		}
		back := unfold(s, quotes, offsets)
		if back[len(folded)] != len(s) {
			t.Fatalf("the end of %q maps to %d", s, back[len(folded)])
		}
		for i := range len(folded) {
			if got := fold(s[back[i]:back[i+1]], quotes); got != folded[i:i+1] {
				t.Fatalf("%q[%d:%d] folds to %q, want %q", s, back[i], back[i+1], got, folded[i:i+1])
			}
		}
	})
}
