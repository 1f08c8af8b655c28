package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The pages of other MCP servers: all of them, or one.
type serverPages struct{ *website }

// A serverView is a server on its page.
type serverView struct {
	Status  mcpserver.ServerStatus
	Changes []mcpserver.ServerChange
	Seen    string // identifies the changes that were shown: only they can be accepted
	Offered []*builtin.Def
}

// A serversBody is the page of servers.
type serversBody struct{ Servers []serverView }

// views returns all servers, or only the one with the given name.
func (s serverPages) views(name string) (all []serverView) {
	gateway := s.operator.Gateway()
	for _, status := range gateway.Servers() {
		if name != "" && status.Name != name {
			continue
		}
		v := serverView{Status: status}
		v.Changes, _ = gateway.Review(status.Name) // fails if the server was removed meanwhile
		v.Seen = digest(v.Changes)
		for _, d := range gateway.Tools() {
			if d.Server == status.Name {
				v.Offered = append(v.Offered, d)
			}
		}
		all = append(all, v)
	}
	return all
}

func (s serverPages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, "", false, http.StatusOK)
}

func (s serverPages) showWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	all := s.views(v.PathValue("name"))
	if len(all) == 0 && v.PathValue("name") != "" {
		s.gone(w, v, "Server", "There is no such server.")
		return
	}
	s.write(w, v, status, layout{Page: "servers", Title: "Servers", Said: said, Failed: failed, Body: serversBody{all}})
}

// restart restarts a server.
func (s serverPages) restart(w http.ResponseWriter, v pageRequest) {
	name := v.PathValue("name")
	s.act(w, v, name+" is started anew.", func() error { return s.operator.Gateway().Restart(name) })
}

// accept accepts the changes of a server that the page has shown.
func (s serverPages) accept(w http.ResponseWriter, v pageRequest) {
	name := v.PathValue("name")
	s.act(w, v, "What "+name+" offers is accepted.", func() error {
		gateway := s.operator.Gateway()
		changes, err := gateway.Review(name)
		if err == nil && digest(changes) != v.PostFormValue("seen") {
			err = errors.New("nothing was accepted: what the server offers has changed since the page was loaded. Look at " +
				"it again")
		}
		if err == nil {
			err = gateway.Shown(name, changes)
		}
		if err == nil {
			err = gateway.Accept(name, changes)
		}
		return err
	})
}

// act does what a form asks for, if forms are permitted.
func (s serverPages) act(w http.ResponseWriter, v pageRequest, said string, do func() error) {
	err := s.operator.MayAnswer()
	if err != nil {
		err = fmt.Errorf("nothing was done. %w", err)
	} else {
		err = do()
	}
	if err != nil {
		s.showWith(w, v, sentence(err.Error()), true, http.StatusConflict)
		return
	}
	s.showWith(w, v, said, false, http.StatusOK)
}

// digest returns a text that identifies what a page has shown.
func digest(shown any) string {
	raw, _ := json.Marshal(shown) // cannot fail: it consists of texts and times
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
