// This file and config.go, message.go, metric.go and span.go send the data of the OpenTelemetry SDK to a collector,
// as OTLP over HTTP in protobuf.
//
// They replace the exporters of the OpenTelemetry project, which import gRPC even for HTTP. With gRPC in the binary,
// the linker can no longer remove any exported method: every start took 5.5 MB and up to 2 ms more, even of a host
// that sends nothing, and the binary grew by 14 MB. The tests compare what is sent with what those exporters send.
// Only what this program records is encoded: spans of the server kind without links, and a histogram.

package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of one export.
const (
	// firstWait is the pause before the second try, which is doubled for each further try up to lastWait.
	firstWait = 500 * time.Millisecond
	lastWait  = 10 * time.Second
	// maxAnswer is how many bytes of a collector's answer are read.
	maxAnswer = 4 << 10
)

// A sender posts messages to one endpoint.
type sender struct {
	cfg  endpoint
	http *http.Client
	// life is done when end is called, at the end of the sender.
	life context.Context
	end  context.CancelCauseFunc
}

func newSender(cfg endpoint) *sender {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = cfg.TLS
	s := &sender{cfg: cfg, http: &http.Client{
		Transport: transport, Timeout: cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // headers may hold keys
	}}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// errEnded is the error for messages after the end.
var errEnded = errors.New("the host is closing")

// close cancels what is being sent. Otherwise the SDK would keep trying after the end of the host.
func (s *sender) close() {
	s.end(errEnded)
	s.http.CloseIdleConnections()
}

// Shutdown implements the SDK's interfaces.
func (s *sender) Shutdown(context.Context) error {
	s.close()
	return nil
}

// errPassing is a temporary error, after which the message is sent again.
type errPassing struct {
	error
	wait time.Duration // as the collector asked for; 0: no answer asked for it
}

// send posts a message. It tries until the collector accepts the message or rejects it permanently, or ctx is done.
func (s *sender) send(ctx context.Context, message []byte) error {
	body, err := s.packed(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })()
	wait := firstWait
	for {
		err := s.post(ctx, body)
		var passing errPassing
		if !errors.As(err, &passing) {
			return err
		}
		pause := max(passing.wait, wait/2+rand.N(wait/2))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (given up: %w)", err, context.Cause(ctx))
		}
		wait = min(2*wait, lastWait)
	}
}

func (s *sender) packed(message []byte) ([]byte, error) {
	if !s.cfg.Gzip {
		return message, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(message)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range s.cfg.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "toolhost")
	if s.cfg.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return transportError(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // only for the text of an error
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout: // as OTLP says
		return errPassing{statusError(req.URL, resp, answer), retryAfter(resp.Header.Get("Retry-After"))}
	}
	if resp.StatusCode/100 != 2 {
		return statusError(req.URL, resp, answer)
	}
	return nil
}

// transportError returns an errPassing if the collector may be reachable later, and otherwise err itself.
func transportError(err error) error {
	var op *net.OpError
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	if errors.As(err, &op) || errors.As(err, &name) || errors.As(err, &timeout) && timeout.Timeout() {
		return errPassing{error: err}
	}
	return err
}

func statusError(u *url.URL, resp *http.Response, answer []byte) error {
	err := fmt.Errorf("the collector at %s answered %s", u.Redacted(), resp.Status)
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/") && len(answer) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(answer)))
	}
	return err
}

// retryAfter returns the seconds in a Retry-After header. It ignores a date.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
