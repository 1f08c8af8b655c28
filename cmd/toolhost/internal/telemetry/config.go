package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// A signalName is a kind of data, by its part in the names of environment variables.
type signalName string

// The signals that are sent.
const (
	tracesSignal  signalName = "TRACES"
	metricsSignal signalName = "METRICS"
)

// Defaults of the OTLP exporter specification.
const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
)

// An endpoint says where and how one signal is sent.
type endpoint struct {
	URL     string
	Headers map[string]string
	Timeout time.Duration // of one request
	Gzip    bool
	TLS     *tls.Config // nil: the system's
	// Delta says that the backend wants metrics with delta temporality.
	Delta bool
}

// An environment looks up variables: first the one for the signal, then the one for all signals.
type environment struct {
	signal signalName
	get    func(string) string
}

func (e environment) value(name string) (value, variable string) {
	variable = "OTEL_EXPORTER_OTLP_" + string(e.signal) + "_" + name
	if v := e.get(variable); v != "" {
		return v, variable
	}
	variable = "OTEL_EXPORTER_OTLP_" + name
	return e.get(variable), variable
}

// endpointFromEnv reads the standard environment variables for one signal. ok is false if they do not ask for the
// signal.
func endpointFromEnv(signal signalName, getenv func(string) string) (cfg endpoint, ok bool, err error) {
	e := environment{signal, getenv}
	if !e.asked() {
		return endpoint{}, false, nil
	}
	protocol, variable := e.value("PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return endpoint{}, false, fmt.Errorf("%s=%s: only http/protobuf is supported; collectors receive it on port 4318",
			variable, protocol)
	}
	if cfg.URL, err = e.url(); err != nil {
		return endpoint{}, false, err
	}
	headers, variable := e.value("HEADERS")
	if cfg.Headers, err = parseHeaders(headers); err != nil {
		return endpoint{}, false, fmt.Errorf("%s: %w", variable, err)
	}
	cfg.Timeout = defaultTimeout
	if text, variable := e.value("TIMEOUT"); text != "" {
		millis, err := strconv.Atoi(text)
		if err != nil || millis <= 0 {
			return endpoint{}, false, fmt.Errorf("%s=%s: it must be a number of milliseconds", variable, text)
		}
		cfg.Timeout = time.Duration(millis) * time.Millisecond
	}
	switch kind, variable := e.value("COMPRESSION"); kind {
	case "gzip":
		cfg.Gzip = true
	case "", "none":
	default:
		return endpoint{}, false, fmt.Errorf("%s=%s: it must be gzip or none", variable, kind)
	}
	preference := getenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")
	cfg.Delta = strings.EqualFold(preference, "delta") || strings.EqualFold(preference, "lowmemory")
	cfg.TLS, err = e.tls()
	return cfg, err == nil, err
}

// asked reports whether the variables ask for the signal, by an endpoint or by the name of the exporter.
func (e environment) asked() bool {
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch exporter := e.get("OTEL_" + string(e.signal) + "_EXPORTER"); exporter {
	case "otlp":
		return true
	case "":
		endpoint, _ := e.value("ENDPOINT")
		return endpoint != ""
	}
	return false // "none", or an exporter that is not supported
}

// url returns the endpoint of the signal as it is set, or else the common endpoint with the path of the signal.
func (e environment) url() (string, error) {
	text, variable := e.value("ENDPOINT")
	if text == "" {
		text = defaultEndpoint
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", variable, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s=%s: it must be a URL such as %s", variable, u.Redacted(), defaultEndpoint)
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(string(e.signal)))
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// parseHeaders parses pairs as in a W3C baggage header: key=value,key=value, percent-encoded.
func parseHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name, " \t\r\n:") ||
			strings.ContainsAny(decoded, "\r\n") {
			// The error does not have the text, which may hold secrets.
			return nil, errors.New("it must be a list such as api-key=secret,tenant=a")
		}
		headers[name] = decoded
	}
	return headers, nil
}

// tls returns the TLS configuration that the variables ask for, or nil.
func (e environment) tls() (*tls.Config, error) {
	var cfg tls.Config
	ca, variable := e.value("CERTIFICATE")
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in %s", variable, ca)
		}
	}
	cert, variable := e.value("CLIENT_CERTIFICATE")
	key, _ := e.value("CLIENT_KEY")
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if cfg.RootCAs == nil && cfg.Certificates == nil {
		return nil, nil
	}
	return &cfg, nil
}
