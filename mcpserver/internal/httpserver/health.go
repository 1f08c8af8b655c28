package httpserver

import (
	"io"
	"net/http"
)

// Paths that tell a supervisor how the server is, without a token and without detail.
const (
	// healthPath answers 200 as long as the process answers.
	healthPath = "/healthz"
	// readyPath answers 200 when calls can be served as they should, and 503 otherwise; see Host.Ready of mcpserver.
	readyPath = "/readyz"
)

// healthy answers that the process is there.
func (d *handler) healthy(w http.ResponseWriter, _ *http.Request) {
	writePlain(w, http.StatusOK, "ok\n")
}

// ready answers whether calls should be sent here. The reason is only in the log: any stranger may ask.
func (d *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if d.admission.closing() || d.host.Ready() != nil {
		writePlain(w, http.StatusServiceUnavailable, "not ready\n")
		return
	}
	writePlain(w, http.StatusOK, "ready\n")
}

func writePlain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that is gone needs no answer
}
