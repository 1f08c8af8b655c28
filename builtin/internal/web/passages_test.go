package web

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/integration/testenv"
)

// topics are sections of a manual, each with a sentence that only it has, and a question as a model asks it.
var topics = []struct{ heading, text, question string }{
	{"Rotating log files", "A log is rotated when it reaches the size in log.max_size. Old ones are compressed and kept for log.keep days.", "How do I configure log rotation?"},
	{"Client certificates", "With tls.client_ca set, the server accepts only clients whose certificate was signed by that authority.", "mutual TLS: how to require client certificates"},
	{"Backing up while running", "The command snapshot writes a consistent copy of the store without stopping the server.", "What command makes a backup of a running server?"},
	{"Limits of memory", "cache.memory bounds what the page cache takes. Beyond it the least used pages are dropped.", "reduce memory usage of the cache"},
	{"Exit codes", "The program exits with 3 when the configuration is invalid, and with 4 when the port is in use.", "what does exit code 4 mean"},
	{"Environment variables", "GADGET_HOME names the directory of the configuration; GADGET_TOKEN replaces the token file.", "Which environment variable sets the token?"},
	{"Proxies", "Requests go through the proxy in outbound.proxy, except to the hosts of outbound.no_proxy.", "use an HTTP proxy for outgoing requests"},
	{"Time zones", "Schedules are read in the zone that schedule.zone names, and in UTC if none is named.", "in which timezone do schedules run?"},
	{"Rate limits", "A client that sends more than limits.rps requests gets the status 429 and a Retry-After header.", "rate limiting requests per second"},
	{"Webhooks", "Each delivery is signed with HMAC-SHA256 in the header X-Gadget-Signature.", "verify webhook signature"},
	{"Upgrading from version 2", "Run migrate before the first start of version 3; the old store is kept beside the new one.", "how to migrate from v2 to v3, upgrade steps"},
	{"Roles", "The role auditor may read everything and change nothing; operator may restart workers.", "permissions of the auditor role"},
	{"Search syntax", "A phrase stands in quotes, a minus excludes a word, and field:value restricts the search.", "how can I exclude a word from a search query"},
	{"Health checks", "GET /live answers while the process runs; GET /ready only when the store is open.", "readiness probe endpoint kubernetes"},
	{"Deleting data", "purge removes a record for good; without it a record can be restored for thirty days.", "permanently delete a record"},
	{"Metrics", "The endpoint /metrics speaks the format of Prometheus; labels are bounded by metrics.max_labels.", "Extract the prometheus metrics endpoint and options"},
	{"Plugins", "A plugin is a WebAssembly module in the directory plugins; it is loaded when it is written there.", "write a plugin in webassembly"},
	{"Windows service", "gadget service install registers the program with the service manager of Windows.", "install as a Windows service"},
	{"Compression", "Responses over a kilobyte are compressed with zstd or gzip, as the client accepts it.", "does it support zstd compression"},
	{"Reset the administrator password", "Stop the server and run passwd --reset admin in the directory of the store.", "forgot admin password, how to reset"},
}

// manual is 300 KB of Markdown with the topics in it.
func manual() string {
	r := rand.New(rand.NewPCG(1, 2))
	filler := strings.Fields("value request server store page field client header option file token number process record worker command directory configuration default list returns name type string integer optional example see also above below version cache search plugin size limit password service")
	var sections []string
	for i := 0; len(sections) < 330; i++ {
		var b strings.Builder
		fmt.Fprintf(&b, "## Reference %d: the %s %s\n\n", i, filler[r.IntN(len(filler))], filler[r.IntN(len(filler))])
		for range 3 {
			for range 45 {
				b.WriteString(filler[r.IntN(len(filler))] + " ")
			}
			b.WriteString("\n\n")
		}
		sections = append(sections, b.String())
	}
	for i, topic := range topics {
		at := 10 + i*16
		sections[at] += "## " + topic.heading + "\n\nThis section is about it.\n\n" + topic.text + "\n\n"
	}
	return "# The manual of gadget\n\n" + strings.Join(sections, "")
}

// TestPrompt: of a long manual the section that is asked for is shown.
func TestPrompt(t *testing.T) {
	testenv.NotShort(t, "reads a manual 20 times")
	text := manual()
	if len(text) < 300_000 {
		t.Fatalf("the manual has %d bytes", len(text))
	}
	found := 0
	for _, topic := range topics {
		v := showText(text, topic.question, 0, 29_000)
		if n := utf8.RuneCountInString(v.Text); n > 29_000 {
			t.Errorf("%q: %d characters", topic.question, n)
		}
		if strings.Contains(v.Text, topic.text) && strings.Contains(v.Text, "## "+topic.heading) {
			found++
		} else {
			t.Logf("not shown: %q", topic.question)
		}
		if !strings.HasPrefix(v.Text, "# The manual") || !strings.Contains(v.Text, " characters …]") || v.Next == 0 {
			t.Errorf("%q: begins %.40q, next %d", topic.question, v.Text, v.Next)
		}
	}
	if found < 18 {
		t.Errorf("%d of 20 sections are shown, 18 are expected", found)
	}
}

// TestShow pages through a text, in every script, and neither loses nor repeats a character.
func TestShow(t *testing.T) {
	for name, text := range map[string]string{
		"lines": strings.Repeat("a line of text\n", 500), "one line": strings.Repeat("é", 5000), "short": "short", "empty": "", "manual": manual()[:20_000],
	} {
		var whole strings.Builder
		offset := 0
		for range 1000 {
			v := showText(text, "", offset, 700)
			whole.WriteString(v.Text)
			if offset = v.Next; offset == 0 {
				break
			}
		}
		if whole.String() != text {
			t.Errorf("%s: %d bytes of %d", name, whole.Len(), len(text))
		}
	}
	if v := showText("abc", "", 10, 100); v.Shown != 0 || v.Total != 3 || v.Next != 0 {
		t.Errorf("beyond the end: %+v", v)
	}
	if v := showText(strings.Repeat("日本語の文書です。\n\n", 2000)+"\n\n設定ファイルの場所\n\n", "設定ファイルはどこ", 0,
		1000); !strings.Contains(v.Text, "設定ファイルの場所") {
		t.Error("a question in Japanese finds nothing")
	}
	if v := showText(strings.Repeat("x", 100_000), "y", 0, 1000); v.Shown != 1000 || v.Next != 1000 {
		t.Errorf("nothing fits: %d shown, next %d", v.Shown, v.Next)
	}
	if v := showText(strings.Repeat("x y ", 100_000), "y", 0, 10_000); utf8.RuneCountInString(v.Text) > 10_000 ||
		v.Shown == 0 {
		t.Errorf("one line: %d shown", v.Shown)
	}
}

func showText(text, question string, offset, limit int) View {
	return (&Document{Text: text}).Show(question, offset, limit)
}
