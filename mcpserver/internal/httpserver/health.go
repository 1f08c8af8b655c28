package httpserver

import (
	"io"
	"net/http"
)

// Paths that report the server's health to a supervisor, without a token and without details.
const (
	// healthPath answers 200 as long as the process answers.
	healthPath = "/healthz"
	// readyPath answers 200 when calls can be served fully, and 503 otherwise; see Host.Ready of mcpserver.
	readyPath = "/readyz"
)

// healthy answers that the process runs.
func (d *handler) healthy(w http.ResponseWriter, _ *http.Request) {
	writePlain(w, http.StatusOK, "ok\n")
}

// ready answers whether calls should be sent here. The reason appears only in the log, because anyone may ask.
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
