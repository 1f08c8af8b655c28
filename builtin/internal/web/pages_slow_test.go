//go:build slow

package web

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestHardPages converts pages that are made to be hard.
func TestHardPages(t *testing.T) {
	line := "<p>" + strings.Repeat("word ", lineWords) + "</p>"
	var styles strings.Builder
	for i := range 400 {
		fmt.Fprintf(&styles, "<b id=%d>", i)
	}
	for name, tt := range map[string]struct {
		page, want string
	}{
		"one line":        {"<!doctype html><title>x</title>" + line, "word word"},
		"nested":          {"<!doctype html>" + strings.Repeat("<div>", 10_000) + "deep" + strings.Repeat("</div>", 10_000), "deep"},
		"nested lists":    {"<!doctype html>" + strings.Repeat("<ul><li>", 240) + "deep", "deep"},
		"nested quotes":   {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + "deep", "deep"},
		"nested spans":    {"<!doctype html><p>" + strings.Repeat("<b><i>", 200) + "deep", "deep"},
		"many attributes": {"<!doctype html><p " + strings.Repeat("a=b ", 200_000) + ">text", "text"},
		"unclosed":        {"<!doctype html>" + strings.Repeat("<p><b><a href=x>y", 5_000), "y"},
		"wide table":      {"<!doctype html><table><tr>" + strings.Repeat("<td>c", 3_000) + "</table>", "c"},
		"great span":      {"<!doctype html><table><tr><td colspan=100000000 rowspan=100000000>c<td>d<tr><td>e</table>", "c"},
		"only signs":      {"<!doctype html><p>" + strings.Repeat("[*_`(", 50_000), "[*_"},
		"many headings":   {"<!doctype html>" + strings.Repeat("<h2 id=a>t</h2>", lineWords/50), "{#a}"},
		"spanned text":    {"<!doctype html><table><tr><td colspan=20 rowspan=20>" + line + "</table>", "word word"},
		"spanned cells":   {"<!doctype html><table>" + strings.Repeat("<tr>"+strings.Repeat("<td colspan=20 rowspan=20>c", 10), 2_000), "c"},
		"filled table":    {"<!doctype html><table><tr>" + strings.Repeat("<td>c", 900) + strings.Repeat("<tr><td>x", 30_000), "x"},
		"nested tables":   {"<!doctype html>" + strings.Repeat("<table><tr><td colspan=20 rowspan=20>c<td>", 100) + line, "word word"},
		"nested cells":    {"<!doctype html><table><tr><td><math>" + strings.Repeat("<td>", 400) + line, "word word"},
		"quoted lines":    {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + strings.Repeat("x<br>", 200_000), "x"},
		"quoted code":     {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + "<pre>" + strings.Repeat("x\n", 200_000), "x"},
		"long base":       {"<!doctype html><base href=/" + strings.Repeat("a", 500_000) + "/>" + strings.Repeat("<p><a href=x>y</a>", 20_000), "y"},
		"long id":         {"<!doctype html>" + strings.Repeat("<h1><div>", 200) + "<b id=" + strings.Repeat("a", 1_000_000) + ">x", "x"},
		"long language":   {"<!doctype html><div data-lang=" + strings.Repeat("a", 500_000) + ">" + strings.Repeat("<code>x</code> ", 20_000), "x"},
		"open styles":     {"<!doctype html>" + styles.String() + strings.Repeat("<p>x", 100_000), "x"},
		"open attributes": {"<!doctype html><b " + strings.Repeat("a ", 200_000) + ">" + strings.Repeat("<p>x", 100_000), "x"},
		"nested JSON":     {strings.Repeat("[", 9_000) + strings.Repeat("0,", 200_000) + "0" + strings.Repeat("]", 9_000), "0,0"},
		"many hidden":     {"<!doctype html>" + strings.Repeat("<div hidden>h", 200) + strings.Repeat("<p hidden>x</p>", 20_000), "x"},
	} {
		if testing.Short() && !strings.HasPrefix(name, "nested") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, err := answer(t, "text/html", []byte(tt.page)).Document(false, "")
			runtime.ReadMemStats(&after)
			if err != nil || !strings.Contains(d.Text, tt.want) {
				t.Fatalf("%v, %d bytes without %q", err, len(d.Text), tt.want)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 2<<30 {
				t.Errorf("%d MiB were allocated", got>>20)
			}
			if len(d.Text) > maxGrowth*len(tt.page)+growthRoom {
				t.Errorf("%d bytes became %d", len(tt.page), len(d.Text))
			}
			t.Logf("%d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}
