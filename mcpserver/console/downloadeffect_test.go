package console

import (
	"net/url"

	"github.com/toolhost/toolhost/guard"
)

// fetch is the fetching of a URL. Its rules are those of WebFetch, by domain.
type fetch struct{ url string }

func (f fetch) Judge(j guard.Judgment) {
	domain := ""
	if u, err := url.Parse(f.url); err == nil {
		domain = u.Hostname()
	}
	j.Decide(guard.Subject{
		What: "fetch " + f.url, Form: "WebFetch", ReadOnly: true, Rule: "WebFetch(domain:" + domain + ")", AlwaysAllow: true,
		Matches: func(specifier string) bool { return specifier == "domain:"+domain },
	})
}

func (fetch) Permission() guard.Permission { return guard.ToRead }

func (f fetch) Record() (field, value string) { return "fetch", f.url }

func (fetch) HookResponse(text string) map[string]any { return map[string]any{"result": text} }
