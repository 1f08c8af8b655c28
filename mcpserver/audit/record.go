package audit

import (
	"strings"
	"time"
)

// A Record is one call.
type Record struct {
	Time      time.Time `json:"time"`
	Principal string    `json:"principal"`
	Scope     string    `json:"scope"`
	Tool      string    `json:"tool"`
	Reads     []string  `json:"reads,omitempty"`
	Writes    []string  `json:"writes,omitempty"`
	// Effects are the effects that no other field shows, each with its verb: "fetch https://example.org/".
	Effects []string `json:"effects,omitempty"`
	Command string   `json:"command,omitempty"`
	// Server is the other server that a call went to, and Upstream the name of the called or read item there. Era is
	// the era of its protocol, Pin the hash of the tool's definition that a person has seen. Replayed says that the
	// request was sent twice.
	Server   string `json:"server,omitempty"`
	Upstream string `json:"upstream,omitempty"`
	Era      string `json:"era,omitempty"`
	Pin      string `json:"pin,omitempty"`
	Replayed bool   `json:"replayed,omitempty"`
	// Verdict is allow, ask or deny; empty if the call ended before it was judged.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Source  string `json:"source,omitempty"`
	// Answered is the channel through which a person gave the verdict: client or console. It is empty if no person was
	// asked, or none has answered yet.
	Answered string `json:"answered,omitempty"`
	// Question is the id of the question that a person was asked about the call.
	Question string `json:"question,omitempty"`
	// Event is the kind of an event within a call: [EventExec]. The call has a record of its own, in which Event is
	// empty.
	Event string `json:"event,omitempty"`
	// Chain lists the programs from the command's shell to the one that starts the program of an [EventExec].
	Chain string `json:"chain,omitempty"`
	// Summary describes the call in one line: a pattern, a range of lines, "+3 -1", the description and first line of a
	// command.
	Summary string `json:"summary,omitempty"`
	// LastLine is the last line of a task's output. It is for observers; contents are not logged.
	LastLine string `json:"-"`
	// Client and ClientVersion are the unverified name and version that the client gives itself.
	Client        string `json:"client,omitempty"`
	ClientVersion string `json:"client_version,omitempty"`
	// Phases are the stages of the question, in order.
	Phases []Phase `json:"phases,omitempty"`
	// Millis is the duration of the call including waits, in milliseconds.
	Millis float64 `json:"duration_ms"`
	// Bytes is the size of the text that was returned.
	Bytes int `json:"result_bytes"`
	// Error is the complete reason of a refusal, or the first line of any other error.
	Error string `json:"error,omitempty"`
}

// A Phase is something that happened to a call before it ran or was refused.
type Phase struct {
	Time time.Time `json:"time"`
	// What is one of the phases below.
	What string `json:"what"`
	// By is the actor: client, console, hook or classifier.
	By string `json:"by,omitempty"`
	// Note is the given reason, or the remembered rule.
	Note string `json:"note,omitempty"`
}

// Did adds a phase with the current time.
func (r *Record) Did(what, by, note string) {
	r.Phases = append(r.Phases, Phase{Time: time.Now(), What: what, By: by, Note: note})
}

// Add records an effect in its field; see [guard.Effect].
func (r *Record) Add(field, value string) {
	switch field {
	case "":
	case "reads":
		r.Reads = append(r.Reads, value)
	case "writes":
		r.Writes = append(r.Writes, value)
	case "command":
		r.Command = value
	default:
		if field == "call" || field == "resource" || field == "prompt" {
			r.Server, r.Upstream, _ = strings.Cut(value, "/")
		}
		r.Effects = append(r.Effects, field+" "+value)
	}
}
