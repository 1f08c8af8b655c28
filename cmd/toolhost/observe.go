package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/metrics"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/telemetry"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// observeFlags are the flags of what a host reports: its messages, its record and its metrics.
type observeFlags struct {
	logFormat, logLevel string
	verbose             bool
	auditLog            string
	auditMaxSize        byteSize
	auditKeep           int
	metrics             metrics.Config
	serving             bool // the host serves clients, whose calls may be traced and measured

	count  *metrics.Metrics // nil unless metrics are served
	traces *telemetry.Telemetry
}

func (f *observeFlags) add(flags *pflag.FlagSet) {
	f.addLog(flags)
	f.auditMaxSize = audit.DefaultMaxSize
	flags.StringVar(&f.auditLog, "audit-log", "", "record every call in this `FILE`, and refuse calls that cannot be "+
		"recorded")
	flags.Var(&f.auditMaxSize, "audit-max-size", "begin a new audit log when this one would grow over so many bytes, "+
		"such as 64MiB; 0 never does")
	flags.IntVar(&f.auditKeep, "audit-keep", audit.DefaultKeep, "keep so many earlier audit logs, as FILE.1 and so on")
}

// addLog adds the flags of the messages on stderr.
func (f *observeFlags) addLog(flags *pflag.FlagSet) {
	flags.StringVar(&f.logFormat, "log-format", "text", "the `FORMAT` of messages on stderr: text or json")
	flags.StringVar(&f.logLevel, "log-level", commandLevel,
		"the least `LEVEL` of messages that are printed: debug, info, warn or error")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print more on stderr; the same as --log-level debug")
}

// addServing adds the flags of a host that serves clients.
func (f *observeFlags) addServing(flags *pflag.FlagSet) {
	f.serving = true
	f.warn(flags)
	flags.StringVar(&f.metrics.Address, "metrics", "",
		"serve metrics for Prometheus on this `ADDRESS`, such as 127.0.0.1:9464")
	flags.StringVar(&f.metrics.TokenFile, "metrics-token-file", "",
		"the `FILE` with the bearer token of the scraper; needed where others can reach the address")
}

// warn makes warnings the default level: the output of the command does not show what a host does while it serves.
func (f *observeFlags) warn(flags *pflag.FlagSet) {
	f.logLevel, flags.Lookup("log-level").DefValue = defaultLevel, defaultLevel
}

// The levels of messages. A serving host logs problems that a person should solve; other commands print them.
const (
	defaultLevel = "warn"
	commandLevel = "error"
)

// logger writes messages as the flags say.
func (f *observeFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(f.logLevel, defaultLevel))); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %s: it must be debug, info, warn or error", f.logLevel)}
	}
	if f.verbose {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text", "": // the command does not have the flag
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %s: it must be text or json", f.logFormat)}
}

// apply configures a host.
func (f *observeFlags) apply(cfg *mcpserver.Config) error {
	if f.auditMaxSize > 0 && f.auditKeep < 1 {
		return usageError{fmt.Errorf("--audit-keep %d: at least one earlier log is kept", f.auditKeep)}
	}
	if f.auditMaxSize > 0 && f.auditMaxSize < audit.MinSize {
		return usageError{fmt.Errorf("--audit-max-size %s: at least %s, which the longest record takes", f.auditMaxSize,
			byteSize(audit.MinSize))}
	}
	cfg.AuditLog, cfg.AuditMaxSize, cfg.AuditKeep = f.auditLog, int64(f.auditMaxSize), f.auditKeep
	var err error
	if cfg.Log, err = f.logger(os.Stderr); err == nil && f.serving {
		f.watch(cfg)
	}
	telemetry.HideSecrets()
	return err
}

// watch adds tracing and metrics to the host of this configuration, if the flags ask for them.
func (f *observeFlags) watch(cfg *mcpserver.Config) {
	var err error
	if f.traces, err = telemetry.Start(context.Background(),
		telemetry.Config{Version: cfg.Version, Log: cfg.Log}); err != nil {
		cfg.Log.Warn("OpenTelemetry cannot do all that the environment asks for", "error", err)
	}
	if f.traces != nil {
		cfg.Observers = append(cfg.Observers, f.traces)
	}
	if f.metrics.Address != "" {
		f.count = metrics.New()
		cfg.Observers = append(cfg.Observers, f.count)
	}
}

// end sends the last traces.
func (f *observeFlags) end(ctx context.Context, log *slog.Logger) {
	if err := f.traces.Shutdown(context.WithoutCancel(ctx)); err != nil {
		log.Warn("the last traces or metrics could not be sent", "error", err)
	}
}

// open listens for scrapers, if metrics are asked for.
func (f *observeFlags) open(host *mcpserver.Host) (all []sidecar, err error) {
	if f.count == nil {
		return nil, nil
	}
	cfg := f.metrics
	cfg.Version, cfg.Log = versionString(), host.Log()
	site, err := f.count.Listen(cfg)
	if err != nil {
		return nil, err
	}
	host.KeepPort(site.Addr())
	return []sidecar{{
		announce: func() { fmt.Fprintf(os.Stderr, "metrics on %s\n", site.URL()) },
		serve:    func(ctx context.Context) error { return site.Serve(ctx, host.Operator().Stats) },
	}}, nil
}

// A byteSize is a number of bytes as people write it.
type byteSize int64

// units are the suffixes of a [byteSize]. Single letters are powers of 1024, as in dd and head.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}, {"", 1},
}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(strings.ToUpper(text), strings.ToUpper(u.suffix))
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*b = byteSize(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 64MiB, 500MB, 1G or 0", text)
}

// String implements pflag.Value.
func (b byteSize) String() string {
	for _, u := range units[:3] {
		if n := int64(b) / u.bytes; n > 0 && n < 1024 && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(n, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Type implements pflag.Value.
func (byteSize) Type() string { return "SIZE" }
