package console

import (
	"net/url"

	"github.com/toolhost/toolhost/guard"
)

// downloading is the fetching of a URL. Its rules are those of Download, by domain.
type downloading struct{ url string }

func (f downloading) Judge(j guard.Judgment) {
	domain := ""
	if u, err := url.Parse(f.url); err == nil {
		domain = u.Hostname()
	}
	j.Decide(guard.Subject{
		What: "download " + f.url, Form: "Download", ReadOnly: true, Rule: "Download(domain:" + domain + ")",
		AlwaysAllow: true,
		Matches:     func(specifier string) bool { return specifier == "domain:"+domain },
	})
}

func (downloading) Permission() guard.Permission { return guard.ToRead }

func (f downloading) Record() (field, value string) { return "download", f.url }

func (downloading) HookResponse(text string) map[string]any { return map[string]any{"result": text} }
