// Package secrets finds keys and tokens in text by their form. It looks for forms that issuers have chosen to be
// recognised, and not for passwords, which have none.
package secrets

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A pattern is the form of a kind of secret.
type pattern struct {
	kind  string
	marks []string // a match begins with one of these
	form  func() *regexp.Regexp
}

// lazy compiles a pattern at its first use: most programs see no secret.
func lazy(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + form + `)`) })
}

// patterns are the known forms. A group, if there is one, is the secret; the rest of a match is its context. A JSON
// text may have backslashes before a slash.
var patterns = []pattern{
	{"private key", []string{"-----BEGIN "}, lazy(`-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\+[nr])*(?:[A-Za-z-]+: [^\n\\]*(?:\s|\\+[nr])+)*((?:[A-Za-z0-9+/=\r\n]|\\+[nr/]){40,})`)},
	{"AWS access key", []string{"AKIA", "ASIA"}, lazy(`(?:AKIA|ASIA)[A-Z2-7]{16}\b`)},
	{"AWS secret key", []string{"secret_access_key", "SECRET_ACCESS_KEY", "secretAccessKey", "SecretAccessKey", "awsSecretAccessKey"}, lazy(`[A-Za-z_]+["'=:\s\\]{1,12}([A-Za-z0-9+]{3}(?:[A-Za-z0-9+]|\\*/){37})\b`)},
	{"GitHub token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, lazy(`(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`)},
	{"GitLab token", []string{"glpat-", "glptt-", "gldt-", "glrt-"}, lazy(`gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,}`)},
	{"Slack token", []string{"xox", "xapp-"}, lazy(`(?:xox[abeoprs]-[A-Za-z0-9-]{20,}|xapp-\d-[A-Za-z0-9-]{20,})`)},
	{"Slack webhook", []string{"hooks.slack.com"}, lazy(`hooks\.slack\.com\\*/services\\*/(T[A-Z0-9]{6,}\\*/B[A-Z0-9]{6,}\\*/[A-Za-z0-9]{20,})`)},
	{"OpenAI key", []string{"sk-"}, lazy(`sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})`)},
	{"Anthropic key", []string{"sk-ant-"}, lazy(`sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}`)},
	{"OpenRouter key", []string{"sk-or-"}, lazy(`sk-or-v1-[a-f0-9]{64}\b`)},
	{"Google API key", []string{"AIza"}, lazy(`AIza[A-Za-z0-9_-]{35}\b`)},
	{"Google OAuth secret", []string{"GOCSPX-", "ya29."}, lazy(`(?:GOCSPX-[A-Za-z0-9_-]{28}\b|ya29\.[A-Za-z0-9_-]{30,})`)},
	{"Stripe key", []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"}, lazy(`(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,})`)},
	{"npm token", []string{"npm_"}, lazy(`npm_[A-Za-z0-9]{36}\b`)},
	{"PyPI token", []string{"pypi-AgE"}, lazy(`pypi-AgE[A-Za-z0-9_-]{50,}`)},
	{"Hugging Face token", []string{"hf_"}, lazy(`hf_[A-Za-z]{34}\b`)},
	{"SendGrid key", []string{"SG."}, lazy(`SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b`)},
	{"Twilio key", []string{"SK"}, lazy(`SK[0-9a-f]{32}\b`)},
	{"DigitalOcean token", []string{"dop_v1_", "doo_v1_", "dor_v1_"}, lazy(`do[opr]_v1_[a-f0-9]{64}\b`)},
	{"Shopify token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, lazy(`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b`)},
	{"Atlassian token", []string{"ATATT3", "ATCTT3"}, lazy(`AT[AC]TT3[A-Za-z0-9_=-]{50,}`)},
	{"Linear key", []string{"lin_api_"}, lazy(`lin_api_[A-Za-z0-9]{40}\b`)},
	{"Notion token", []string{"ntn_", "secret_"}, lazy(`(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}\b)`)},
	{"Vault token", []string{"hvs.", "hvb."}, lazy(`hv[sb]\.[A-Za-z0-9_-]{24,}`)},
	{"Databricks token", []string{"dapi"}, lazy(`dapi[a-f0-9]{32}\b`)},
	{"Groq key", []string{"gsk_"}, lazy(`gsk_[A-Za-z0-9]{52}\b`)},
	{"xAI key", []string{"xai-"}, lazy(`xai-[A-Za-z0-9]{80}\b`)},
	{"Figma token", []string{"figd_"}, lazy(`figd_[A-Za-z0-9_-]{40}`)},
	{"Telegram bot token", []string{":AA"}, lazy(`:(AA[A-Za-z0-9_-]{33})\b`)},
	{"Azure storage key", []string{"AccountKey="}, lazy(`AccountKey=((?:[A-Za-z0-9+]|\\*/){86}==)`)},
	{"JSON Web Token", []string{"eyJ"}, lazy(`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`)},
}

// maxSecret is how long a match may be, in bytes.
const maxSecret = 20_000

// A span is the place of a secret in a text.
type span struct {
	from, to int
	kind     string
}

// An index finds the marks of all patterns in one pass, by their first two bytes.
type index struct {
	present [1 << 10]uint64 // a bit for each two bytes that begin a mark
	marks   map[uint16][]marked
}

type marked struct {
	mark string
	pattern
}

var marks = sync.OnceValue(func() *index {
	x := &index{marks: map[uint16][]marked{}}
	for _, p := range patterns {
		for _, mark := range p.marks {
			two := uint16(mark[0])<<8 | uint16(mark[1])
			x.present[two>>6] |= 1 << (two & 63)
			x.marks[two] = append(x.marks[two], marked{mark, p})
		}
	}
	return x
})

// in appends the matches in a text.
func (x *index) in(text string, found []span) []span {
	for at := 0; at+1 < len(text); at++ {
		two := uint16(text[at])<<8 | uint16(text[at+1])
		if x.present[two>>6]&(1<<(two&63)) == 0 {
			continue
		}
		for _, m := range x.marks[two] {
			if strings.HasPrefix(text[at:], m.mark) && begins(text, at) {
				found = m.at(text, at, found)
			}
		}
	}
	return found
}

// at appends the match that begins at a place, if there is one.
func (p pattern) at(text string, at int, found []span) []span {
	m := p.form().FindStringSubmatchIndex(text[at:min(at+maxSecret, len(text))])
	switch {
	case m == nil:
		return found
	case len(m) > 2:
		return append(found, span{at + m[2], at + m[3], p.kind})
	}
	return append(found, span{at, at + m[1], p.kind})
}

// begins reports whether a secret can begin at a place: not within a word, and with a colon only after a number.
func begins(text string, at int) bool {
	if at == 0 {
		return true
	}
	c := text[at-1]
	digit := '0' <= c && c <= '9'
	if text[at] == ':' {
		return digit
	}
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digit
	return !letter || (c == 'n' || c == 'r' || c == 't') && at > 1 && text[at-2] == '\\' // an escape of JSON
}

// Limits of a password in a URL, in bytes. A shorter one is rarely a secret.
const (
	leastPassword = 6
	maxUserInfo   = 160
)

// passwords appends the passwords in URLs of a text.
func passwords(text string, found []span) []span {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '@')
		if next < 0 {
			return found
		}
		at += next
		from := at
		for from > 0 && at-from < maxUserInfo && !strings.ContainsRune(" \t\r\n@/\\\"'<>", rune(text[from-1])) {
			from--
		}
		scheme := strings.HasSuffix(strings.ReplaceAll(text[max(from-12, 0):from], `\`, ""), "://")
		_, password, ok := strings.Cut(text[from:at], ":")
		if scheme && ok && len(password) >= leastPassword && !strings.ContainsAny(password, "{}$*%") {
			found = append(found, span{at - len(password), at, "password in a URL"})
		}
	}
}

// maxSame is how many equal characters in a row show that a match is no secret.
const maxSame = 6

// isExample reports whether a match is what documents use in the place of a secret.
func isExample(match string) bool {
	lower := strings.ToLower(match)
	for _, word := range []string{"example", "xxxx", "your_", "your-", "password", "placeholder"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	run := 1
	for i := 1; i < len(match); i++ {
		if run++; match[i] != match[i-1] {
			run = 1
		}
		if run == maxSame && match[i] != '-' {
			return true
		}
	}
	return false
}

// shownStart is how much of a masked secret is shown, in bytes.
const shownStart = 4

// Find returns the kinds of the secrets in a text, one for each secret, and the text with them masked.
func Find(text string) (kinds []string, masked string) {
	found := marks().in(text, passwords(text, nil))
	if found == nil {
		return nil, text
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, s := range found {
		if s.from < at || isExample(text[s.from:s.to]) {
			continue
		}
		kinds = append(kinds, s.kind)
		out.WriteString(text[at:s.from])
		if start := text[s.from:min(s.from+shownStart, s.to)]; s.to-s.from > 2*shownStart &&
			!strings.ContainsAny(start, "\\\n") {
			out.WriteString(start)
		}
		out.WriteString("…[masked]")
		at = s.to
	}
	out.WriteString(text[at:])
	return kinds, out.String()
}
