package secrets

import (
	"encoding/json"
	"strings"
	"testing"
)

// random are characters without a form, so that this file holds no text that looks like a secret.
const random = "q7Rk2ZpW9sLx4VtB8mNc3YdF6hJg5TaQ1eUi0oPzXwSvKrDlHyGbMnCfEjAu4T7k2pLq9Zx3Wc8Vb5Nm6Rt1Yh0Jg"

func of(n int) string { return random[:n] }

func TestFind(t *testing.T) {
	upper := strings.ToUpper(strings.NewReplacer("0", "B", "1", "C", "8", "D", "9", "E").Replace(random))
	hex := "0123456789abcdef0f1e2d3c4b5a6978" + "13579bdf02468ace13579bdf02468ace"
	tests := []struct{ kind, secret string }{
		{"private key", "-----BEGIN RSA PRIVATE " + "KEY-----\n" + of(64) + "\n" + of(64) + "\n-----END RSA PRIVATE KEY-----"},
		{"private key", `-----BEGIN OPENSSH PRIVATE ` + `KEY-----\n` + of(64) + `\n-----END`},
		{"private key", "-----BEGIN PRIVATE " + "KEY-----\n" + of(64)}, // cut off
		{"AWS access key", "AKIA" + upper[:16]},
		{"AWS secret key", "aws_secret_access_key = " + of(40)},
		{"AWS secret key", `"AWS_SECRET_ACCESS_KEY":"` + of(20) + `\/` + of(19) + `"`},
		{"GitHub token", "ghp_" + of(36)},
		{"GitHub token", "github_pat_" + of(22) + "_" + of(59)},
		{"GitLab token", "glpat-" + of(20)},
		{"Slack token", "xoxb-" + "123456789012-" + of(24)},
		{"Slack webhook", `https:\/\/hooks.slack.com\/services\/T` + upper[:8] + `\/B` + upper[:8] + `\/` + of(24)},
		{"OpenAI key", "sk-proj-" + of(48)},
		{"OpenAI key", "sk-" + of(20) + "T3Blbk" + "FJ" + of(20)},
		{"Anthropic key", "sk-ant-" + "api03-" + of(80)},
		{"Google API key", "AI" + "za" + of(35)},
		{"Google OAuth secret", "GOCSPX-" + of(28)},
		{"Stripe key", "sk_live_" + of(24)},
		{"npm token", "npm_" + of(36)},
		{"PyPI token", "pypi-AgE" + of(60)},
		{"SendGrid key", "SG." + of(22) + "." + of(43)},
		{"Twilio key", "SK" + hex[:32]},
		{"DigitalOcean token", "dop_v1_" + hex},
		{"Shopify token", "shpat_" + hex[:32]},
		{"Atlassian token", "ATATT3" + of(60)},
		{"Linear key", "lin_api_" + of(40)},
		{"Notion token", "ntn_" + of(46)},
		{"Vault token", "hvs." + of(24)},
		{"Databricks token", "dapi" + hex[:32]},
		{"Groq key", "gsk_" + of(52)},
		{"Figma token", "figd_" + of(40)},
		{"Telegram bot token", "123456789:" + "AA" + of(33)},
		{"Azure storage key", "AccountKey=" + of(86) + "=="},
		{"JSON Web Token", "eyJ" + of(20) + ".eyJ" + of(30) + "." + of(40)},
		{"password in a URL", "postgres://app:" + of(12) + "@db.internal:5432/x"},
		{"password in a URL", `mysql:\/\/app:` + of(12) + `@db`},
	}
	for _, tt := range tests {
		kinds, masked := Find("before " + tt.secret + " after")
		if len(kinds) != 1 || kinds[0] != tt.kind {
			t.Errorf("%s: found %v in %s", tt.kind, kinds, tt.secret)
		}
		if strings.Contains(masked, of(20)) || strings.Contains(masked, upper[:16]) ||
			strings.Contains(masked, hex[:16]) || strings.Contains(masked, of(12)+"@") ||
			!strings.HasPrefix(masked, "before ") || !strings.HasSuffix(masked, " after") &&
			!strings.Contains(tt.secret, "BEGIN PRIVATE") {
			t.Errorf("%s: masked as %s", tt.kind, masked)
		}
		quoted, _ := json.Marshal(map[string]string{"a": tt.secret})
		if kinds, masked := Find(string(quoted)); len(kinds) != 1 || !json.Valid([]byte(masked)) {
			t.Errorf("%s in JSON: found %v, masked as %s", tt.kind, kinds, masked)
		}
	}
}

// TestNotFound: what documents and programs have that only looks like a secret.
func TestNotFound(t *testing.T) {
	for _, text := range []string{
		"", "AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-...", "sk-your-key-here", "glpat-", "npm_config_registry", "npm_lifecycle_event",
		"ghp_" + of(10), "hf_transformers", "SG.1", "eyJhbGciOiJIUzI1NiJ9", "-----BEGIN PUBLIC KEY-----\n" + random, "PRIVATE KEY", "-----BEGIN PRIVATE KEY-----",
		"postgres://user:password@localhost/db", "https://user:${PASSWORD}@host", "https://example.com:8080/@scope/pkg", "http://[::1]:3000/a@b", "git+ssh://git@github.com:a/b",
		"postgres://localhost/db", "task-force-of-many-people-who-work-together-in-one-place", "SKU12345", "https://hooks.slack.com/services/", "xoxo-and-more",
		"AccountKey=", "the secret of aws is simple", "risk-assessment-of-everything-that-may-happen-in-a-year-or-so", strings.Repeat("a", 100_000),
	} {
		if kinds, masked := Find(text); kinds != nil || masked != text {
			t.Errorf("%.80q: found %v", text, kinds)
		}
	}
}

// TestSeveral: each secret is masked, and none twice.
func TestSeveral(t *testing.T) {
	kinds, masked := Find("a=ghp_" + of(36) + " b=npm_" + of(36) + " c=ghp_" + of(36))
	if len(kinds) != 3 || masked != "a=ghp_…[masked] b=npm_…[masked] c=ghp_…[masked]" {
		t.Errorf("found %v: %s", kinds, masked)
	}
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("An ordinary line of a result, with a https://host/path and numbers 12345.\n", 400)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Find(text)
	}
}
