package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Messages are held while the client has the terminal, in order and bounded, but for errors.
func TestHeldLog(t *testing.T) {
	var out bytes.Buffer
	var held heldMessages
	log := slog.New(heldLog{slog.NewTextHandler(&out, nil), &held})
	said := func() string {
		defer out.Reset()
		return out.String()
	}
	log.Warn("before")
	if got := said(); !strings.Contains(got, "msg=before") {
		t.Errorf("before the client: %q", got)
	}
	held.hold(&out)
	log.Debug("not asked for")
	log.With("key", "value").WithGroup("g").Warn("first", "n", 1)
	for range maxHeld + 4 {
		log.Info("flood")
	}
	log.Error("failed")
	if got := said(); strings.Count(got, "\n") != 1 || got[0] != '\r' || !strings.HasSuffix(got, "msg=failed\n\r") {
		t.Errorf("while the client runs: %q", got)
	}
	held.release(log)
	got := strings.Split(strings.TrimSpace(said()), "\n")
	if len(got) != maxHeld+1 || !strings.Contains(got[0], "msg=first key=value g.n=1") ||
		!strings.Contains(got[maxHeld], "messages=5") {
		t.Errorf("at the end: %d lines, %q … %q", len(got), got[0], got[len(got)-1])
	}
	log.Warn("after")
	held.release(log)
	if got := said(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "msg=after") {
		t.Errorf("after the client: %q", got)
	}
}
