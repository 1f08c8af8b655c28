package console

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

const (
	// maxAgents is how many sessions the live view keeps. Above it, the longest idle one is dropped.
	maxAgents = 64
	// maxSessionTools is how many names of tools a session counts, because callers can make them up.
	maxSessionTools = 32
)

// An agentSession is what one client has done in one scope since the host began.
type agentSession struct {
	Key, Client, Principal, Scope    string
	Version                          uint64
	First, Last                      time.Time
	Calls, Failed, Refused, Approved int
	Lines                            lineCount
	Millis                           float64
	Tools                            []toolCount // in the order of their first calls
}

// A toolCount says how often a session has called a tool.
type toolCount struct {
	Name  string
	Calls int
}

// sessionKey returns a name for the session of a record. It is not secret, and reveals nothing about the client.
func sessionKey(r audit.Record) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Principal, r.Scope, r.Client, r.ClientVersion}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// clientName returns the name that a client gives itself.
func clientName(r audit.Record) string {
	if r.Client == "" {
		return "unnamed client"
	}
	return strings.TrimSpace(r.Client + " " + r.ClientVersion)
}

// session returns the session of a record, which becomes the most recently used. The caller holds the lock.
func (c *Console) session(r audit.Record) *agentSession {
	key := sessionKey(r)
	s := &agentSession{Key: key, Client: clientName(r), Principal: r.Principal, Scope: r.Scope, First: time.Now()}
	if i := slices.IndexFunc(c.sessions, func(s *agentSession) bool { return s.Key == key }); i >= 0 {
		s = c.sessions[i]
		c.sessions = slices.Delete(c.sessions, i, i+1)
	} else if len(c.sessions) == maxAgents {
		c.sessions = slices.Delete(c.sessions, 0, 1)
	}
	c.sessions = append(c.sessions, s)
	s.Last, s.Version = time.Now(), c.version
	return s
}

// add counts a call that has ended.
func (s *agentSession) add(one *call) {
	s.Calls++
	s.Millis += one.Record.Millis
	s.Lines.Added += one.Lines.Added
	s.Lines.Removed += one.Lines.Removed
	switch one.State {
	case stateFailed:
		s.Failed++
	case stateRefused:
		s.Refused++
	}
	if by, _ := personOf(one.Record); by == audit.PhaseApproved {
		s.Approved++
	}
	i := slices.IndexFunc(s.Tools, func(t toolCount) bool { return t.Name == one.Record.Tool })
	if i < 0 && len(s.Tools) < maxSessionTools {
		s.Tools, i = append(s.Tools, toolCount{Name: one.Record.Tool}), len(s.Tools)
	}
	if i >= 0 {
		s.Tools[i].Calls++
	}
}

// byConsole is the value in records for an answer that was given here.
const byConsole = "console"

// personOf returns what a person, a hook or the classifier decided about a call, and the same in words.
func personOf(r audit.Record) (what, said string) {
	for _, p := range r.Phases {
		switch p.What {
		case audit.PhaseApproved, audit.PhaseRefused:
			by := "you"
			if p.By != mcpserver.ByClient && p.By != byConsole {
				by = "the " + p.By
			}
			what, said = p.What, p.What+" by "+by
		case audit.PhaseExpired:
			what, said = p.What, "no answer in time"
		}
	}
	return what, said
}

// agents returns the sessions, the most recently used first. With a key it returns only that session.
func (c *Console) agents(key string) (all []agentSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range slices.Backward(c.sessions) {
		if key == "" || s.Key == key {
			one := *s
			one.Tools = slices.Clone(s.Tools)
			all = append(all, one)
		}
	}
	return all
}
