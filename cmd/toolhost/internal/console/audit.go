package console

import (
	"net/http"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The page of the audit log.
type auditPages struct{ *website }

// An auditBody is a search of the audit log.
type auditBody struct {
	Path    string
	Query   query
	Since   string
	Tools   []*builtin.Def
	Found   searchResult
	Periods []string
	// Sessions are the sessions of this host that can be chosen.
	Sessions []agentSession

	short func(path string) string
}

// periods returns how far back a search can go, as time.ParseDuration reads it; "" means without limit.
func periods() []string { return []string{"", "10m", "1h", "24h", "168h"} }

func (s auditPages) show(w http.ResponseWriter, v pageRequest) {
	f := layout{Page: "audit", Title: "Audit"}
	body := auditBody{
		Path: s.operator.AuditPath(), Tools: s.host.Tools(mcpserver.Local()), Since: v.FormValue("since"),
		Periods: periods(), short: s.short,
		Query: queryOf(v), Sessions: s.console.agents(""),
	}
	if body.Path == "" {
		f.Said, f.Failed = "Calls are not recorded: the state directory cannot be written.", true
	} else {
		var err error
		if body.Found, err = searchAudit(body.Path, body.Query); err != nil {
			f.Said, f.Failed = sentence(err.Error()), true
		}
	}
	f.Body = body
	s.write(w, v, http.StatusOK, f)
}
