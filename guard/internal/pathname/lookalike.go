package pathname

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// twins are letters of other scripts that look like an ASCII letter, each before it. What Unicode itself takes for a
// form of an ASCII letter, such as a full-width one, is not listed.
const twins = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwкkмmтtгrвbнhАAВBЕEКKМMНHОOРPСCТTУYХXЅSІIЈJԌG" +
	"αaεeοoρpυuνvκkιiτtγyηnχxΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX" +
	"ıiɑaɡgʀRᴇEᴀAᴅDɢGʟLᴏOʙBꜱSʜHᴡWɪIᴛTɩi․."

var asciiOf = func() map[rune]rune {
	m := map[rune]rune{}
	letters := []rune(twins)
	for i := 0; i+1 < len(letters); i += 2 {
		m[letters[i]] = letters[i+1]
	}
	return m
}()

// ascii returns what a character looks like, if that is ASCII and the character is not.
func ascii(r rune) (rune, bool) {
	if r < unicode.MaxASCII {
		return r, false
	}
	if a, ok := asciiOf[r]; ok {
		return a, true
	}
	form := []rune(norm.NFKC.String(string(r)))
	return form[0], len(form) == 1 && form[0] <= unicode.MaxASCII && (unicode.IsLetter(form[0]) || form[0] == '.')
}

// invisible reports whether a character is shown as nothing, or only as a blank.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		r > unicode.MaxASCII && unicode.IsSpace(r) || unicode.IsControl(r) && r != '\t' && r != '\n'
}

// Plain returns s as it looks, as far as that is ASCII: without invisible characters, and with the letters that
// others look like.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch a, ok := ascii(r); {
		case ok:
			return a
		case unicode.IsSpace(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, s)
}

// Disguised returns a character of s that probably is not what it seems: an invisible one next to ASCII or at the
// end, or one that looks like an ASCII letter in a word of ASCII letters. Words of other scripts, and emoji of
// several characters, have none.
func Disguised(s string) (r rune, ok bool) {
	runes := []rune(s)
	isASCII := func(i int) bool { return i < 0 || i >= len(runes) || runes[i] <= unicode.MaxASCII }
	for i, r := range runes {
		if invisible(r) && (isASCII(i-1) || isASCII(i+1) && !unicode.Is(unicode.Variation_Selector, r)) {
			return r, true
		}
	}
	inWord := func(r rune) bool {
		_, twin := ascii(r)
		return twin || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !inWord(r) }) {
		var found rune
		plain, foreign := false, false
		for _, r := range word {
			_, twin := ascii(r)
			switch {
			case twin:
				found = r
			case r <= unicode.MaxASCII:
				plain = plain || unicode.IsLetter(r)
			default:
				foreign = true
			}
		}
		if found != 0 && plain && !foreign {
			return found, true
		}
	}
	return 0, false
}
