package web

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Programs that show Markdown load its images. So the address of an image sends a message to its server: that the
// page was read, and whatever a model has put into the address. The text of a page is not escaped, so it may contain
// the syntax of images too.

const (
	// maxImage is how many bytes the description or the address of an image may have.
	maxImage = 4096
	// maxScans is how many times the bytes of a text may be read to find the ends of its images. Images after that
	// become links.
	maxScans = 16
	// textLess stands for a < in text outside of code. codeImage follows the ! of an image in code, and is removed in
	// the end.
	textLess, codeImage = "\U0010FFF8", "\U0010FFF9"
	textGreater         = "\U0010FFFB" // for a > in all text
	less                = "[<" + textLess + "]"
)

var (
	// loader matches the start of an element that loads something by its attributes. loading matches attributes by which
	// any element loads something. opener matches the start of an element or a comment in which Markdown is not read.
	loader = regexp.MustCompile(`(?i)^` + less + `(?:img|image|picture|source|video|audio|track|` +
		`iframe|frame|object|embed|input|svg|use|link|base|body|meta)[\s/]`)
	loading = regexp.MustCompile(`(?is)^` + less + `[a-z].*?(?:background|url\s*\(|poster|srcset|src\s*=)`)
	opener  = regexp.MustCompile(`(?i)^` + less + `(?:[!?]|(?:style|script|pre|textarea|xmp|title)\b)`)
	picture = regexp.MustCompile(`(?i)^` + less + `(?:img|image)\b`)
	altText = regexp.MustCompile(`(?is)\balt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>` + textGreater + `]+))`)
	// inBrackets replaces the characters that must not be in a description.
	inBrackets = strings.NewReplacer("[", "(", "]", ")", "\n", " ", "|", `\|`)
)

// withoutImages returns Markdown with its images replaced by their descriptions. The result has no image, and no HTML
// element that loads something.
func withoutImages(s string) string {
	r := imageRemover{budget: maxScans * len(s)}
	r.remove(s, &r.out)
	return r.out.String()
}

// An imageRemover removes the images from one text.
type imageRemover struct {
	out    strings.Builder
	budget int // bytes that are still read for the ends of images
}

func (r *imageRemover) remove(s string, out *strings.Builder) {
	for {
		at := strings.IndexAny(s, "!<"+textLess)
		if at < 0 {
			out.WriteString(s)
			return
		}
		out.WriteString(s[:at])
		switch s = s[at:]; {
		case strings.HasPrefix(s, "!["), strings.HasPrefix(s, "!"+beginMark+"["):
			s = r.image(s, out)
		case s[0] != '!':
			s = r.element(s, out)
		default:
			out.WriteByte('!')
			s = s[1:]
		}
	}
}

// describe writes the description of an image. If a ! precedes it, a space is written first, because ![ would begin
// an image.
func describe(out *strings.Builder, alt string) {
	if strings.HasSuffix(strings.TrimSuffix(out.String(), beginMark), "!") {
		out.WriteByte(' ')
	}
	if alt = strings.TrimSpace(alt); alt != "" {
		alt = ": " + alt
	}
	out.WriteString("[image" + alt + "]")
}

// image writes the description of the image that s begins with, and returns what follows it.
func (r *imageRemover) image(s string, out *strings.Builder) (rest string) {
	s = s[1:]
	if after, marked := strings.CutPrefix(s, beginMark); marked {
		out.WriteString(beginMark)
		s = after
	}
	alt, rest, ok := r.bracketed(s, '[', ']')
	if !ok {
		out.WriteString("! [")
		return s[1:]
	}
	if _, after, ok := r.bracketed(rest, '(', ')'); ok {
		rest = after
	} else if _, after, ok := r.bracketed(rest, '[', ']'); ok {
		rest = after
	}
	var inner strings.Builder
	r.remove(alt, &inner)
	describe(out, inner.String())
	return rest
}

// bracketed returns the text between the bracket at the start of s and its closing bracket, and what follows.
func (r *imageRemover) bracketed(s string, open, closing byte) (inner, rest string, ok bool) {
	if s == "" || s[0] != open {
		return "", s, false
	}
	depth := 0
	for i := 0; i < len(s) && i < maxImage && r.budget > 0; i++ {
		r.budget--
		switch s[i] {
		case '\\':
			i++
		case '\n':
			if strings.HasPrefix(s[i:], "\n\n") { // the end of the paragraph
				return "", s, false
			}
		case open:
			depth++
		case closing:
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], true
			}
		}
	}
	return "", s, false
}

// element processes a < at the start of s, and returns the rest. An image is replaced by its description. Another
// element that loads something is removed. The < of an element in which Markdown is not read is escaped.
func (r *imageRemover) element(s string, out *strings.Builder) (rest string) {
	_, size := utf8.DecodeRuneInString(s)
	head := s[:min(len(s), maxTagName)]
	loads, whole := loader.MatchString(head), ""
	if loads || size < len(s) && unicode.IsLetter(rune(s[size])) {
		whole = r.whole(s)
	}
	switch {
	case loads && strings.Contains(whole, "=") && picture.MatchString(whole):
		alt := append(altText.FindStringSubmatch(whole), "", "", "", "")
		describe(out, inBrackets.Replace(withoutImages(alt[1]+alt[2]+alt[3])))
		return s[len(whole):]
	case loads && strings.Contains(whole, "="), !loads && loading.MatchString(whole):
		out.WriteByte(' ')
		return s[len(whole):]
	case loads && whole == "", opener.MatchString(head), r.budget <= 0:
		out.WriteByte('\\')
	}
	out.WriteString(s[:size])
	return s[size:]
}

// maxTagName is more than the length of the names in loader and opener, in bytes.
const maxTagName = 16

// whole returns the start tag at the start of s, or "" if it has no end.
func (r *imageRemover) whole(s string) string {
	for i := 0; i < len(s) && i < maxImage && r.budget > 0; i++ {
		r.budget--
		if s[i] == '>' {
			return s[:i+1]
		}
		if strings.HasPrefix(s[i:], textGreater) {
			return s[:i+len(textGreater)]
		}
	}
	return ""
}
