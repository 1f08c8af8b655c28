package scope

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A handle is 128 random bits, the time it was made, and a signature of both for a principal. So it is valid after a
// restart, although no handles are stored.
const (
	handleRandom = 16 // bytes
	handleTime   = 8
	handleMAC    = 16
	// HandleAge is how long a session handle is valid.
	HandleAge = 7 * 24 * time.Hour
)

func (t *Table) mint(principal string, now time.Time) string {
	raw := make([]byte, handleRandom, handleRandom+handleTime+handleMAC)
	_, _ = rand.Read(raw) // crypto/rand never fails
	raw = binary.BigEndian.AppendUint64(raw, uint64(now.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(raw, t.sign(principal, raw)...))
}

func (t *Table) genuine(principal, handle string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(handle)
	if err != nil || len(raw) != handleRandom+handleTime+handleMAC ||
		base64.RawURLEncoding.EncodeToString(raw) != handle {
		return false
	}
	body, mac := raw[:handleRandom+handleTime], raw[handleRandom+handleTime:]
	made := time.Unix(int64(binary.BigEndian.Uint64(body[handleRandom:])), 0)
	return hmac.Equal(mac, t.sign(principal, body)) && now.Sub(made).Abs() < HandleAge // a clock may have been set back
}

func (t *Table) sign(principal string, body []byte) []byte {
	mac := hmac.New(sha256.New, t.cfg.Secret)
	mac.Write([]byte("session\x00" + principal + "\x00"))
	mac.Write(body)
	return mac.Sum(nil)[:handleMAC]
}
