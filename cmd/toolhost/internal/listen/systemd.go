package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A Notifier tells systemd the state of the service. The zero value, and one outside of systemd, does nothing.
type Notifier struct {
	socket   string
	watchdog time.Duration // the longest interval that systemd permits between two messages; 0: none
	timeout  time.Duration // for sending a message
	log      *slog.Logger
}

// variables are all the variables that systemd sets for a process. Those that are read are removed when they are
// read.
var variables = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES",
}

// ClearEnvironment removes systemd's variables from the environment, so that no command and no hook can notify
// systemd on behalf of the server. It must be called after [Open] and [NewNotifier], which read them.
func ClearEnvironment() error {
	var errs []error
	for _, name := range variables {
		errs = append(errs, os.Unsetenv(name))
	}
	return errors.Join(errs...)
}

// notifyTimeout is how long sending a message may take. The end of the server is announced too, and must not wait for
// a systemd that does not read.
const notifyTimeout = 2 * time.Second

// NewNotifier removes systemd's variables from the environment, so that no command can notify systemd on behalf of
// the server. It must be called before the environment is copied for commands.
func NewNotifier(log *slog.Logger) Notifier {
	socket := os.Getenv("NOTIFY_SOCKET")
	watchdog, err := daemon.SdWatchdogEnabled(true)
	if err = errors.Join(err, os.Unsetenv("NOTIFY_SOCKET")); err != nil {
		log.Warn("what systemd asks for cannot be read", "error", err)
	}
	return Notifier{socket: socket, watchdog: watchdog, timeout: notifyTimeout, log: log}
}

// NotifyReady tells systemd that clients are served. If systemd wants watchdog messages, they are sent while healthy
// returns true, until ctx is done.
func (n Notifier) NotifyReady(ctx context.Context, healthy func() bool) {
	n.send(daemon.SdNotifyReady)
	if n.socket == "" || n.watchdog <= 0 {
		return
	}
	go func() {
		tick := time.NewTicker(n.watchdog / 2) // as sd_watchdog_enabled(3) recommends
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if healthy() {
					n.send(daemon.SdNotifyWatchdog)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// NotifyStopping tells systemd that the service ends, once ctx is done. The returned function must be called before
// the process ends. If ctx is done, it waits until the message was sent.
func (n Notifier) NotifyStopping(ctx context.Context) (told func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		n.send(daemon.SdNotifyStopping)
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

func (n Notifier) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		err = conn.SetWriteDeadline(time.Now().Add(n.timeout)) // systemd's queue may be full
		if err == nil {
			_, err = conn.Write([]byte(state))
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		n.log.Warn("systemd could not be told", "state", state, "error", err)
	}
}
