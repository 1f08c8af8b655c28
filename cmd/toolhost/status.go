package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/console"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// hostsFolder is the subdirectory of the state directory that lists the running hosts.
const hostsFolder = "hosts"

// maxHostFile is the maximum size of a host's file, in bytes.
const maxHostFile = 1 << 20

// maxClients bounds how many clients a host lists.
const maxClients = 32

// A runningHost is a host that serves now, as `toolhost status --json` prints it.
type runningHost struct {
	PID       int       `json:"pid"`
	Transport string    `json:"transport"` // stdio or http
	Address   string    `json:"address,omitempty"`
	Roots     []string  `json:"roots"`
	Clients   []string  `json:"clients"` // those that have called
	Since     time.Time `json:"since"`
	Version   string    `json:"version"`
	AuditLog  string    `json:"audit_log,omitempty"`
	// Console is the address of the console without its login code.
	Console string `json:"console,omitempty"`
}

// A hostRecord keeps the file that says that this host runs. It observes the calls to know the clients.
type hostRecord struct {
	mu   sync.Mutex
	file string
	mark *statedir.Mark // nil: no host serves
	host runningHost
}

// open records that a host serves from now on. If the file cannot be written, the host is only missing in the list.
func (r *hostRecord) open(host *mcpserver.Host, transport, address string) {
	operator := host.Operator()
	dir := filepath.Join(operator.StateDir(), hostsFolder)
	name := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	err := os.MkdirAll(dir, 0o700)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.mark, err = statedir.Own(name + ".lock")
	}
	r.file = name + ".json"
	r.host = runningHost{
		PID: os.Getpid(), Transport: transport, Address: address, Roots: operator.Roots(),
		Clients: append([]string{}, r.host.Clients...),
		Since:   time.Now().UTC().Truncate(time.Second), Version: versionString(), AuditLog: operator.AuditPath(),
	}
	if err == nil {
		err = r.write()
	}
	if err != nil {
		host.Log().Debug("toolhost status does not list this host", "error", err)
	}
	go func() { _, _ = listedHosts(dir) }() // removes what killed hosts have left; the next host tries again
}

// listedHosts returns the names of the records of hosts that run, and removes the others.
func listedHosts(dir string) (names []string, err error) {
	return statedir.Owned(dir, func(name string) error { return os.Remove(filepath.Join(dir, name+".json")) })
}

func (r *hostRecord) write() error {
	raw, err := json.Marshal(r.host)
	if err != nil {
		return err
	}
	return privatefile.ReplaceQuickly(r.file, append(raw, '\n'))
}

// close records that the host has ended.
func (r *hostRecord) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mark != nil {
		// A file that cannot be removed now is removed later.
		_ = r.mark.Release(func() error { return os.Remove(r.file) })
		r.mark = nil
	}
}

// CallBegan implements audit.Observer. It records a new client, without waiting for the disk.
func (r *hostRecord) CallBegan(ctx context.Context, c audit.Call) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := clientOf(c); !slices.Contains(r.host.Clients, name) && len(r.host.Clients) < maxClients {
		r.host.Clients = append(r.host.Clients, name)
		go func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.mark != nil {
				_ = r.write() // the next client writes the file again
			}
		}()
	}
	return ctx
}

// clientOf returns the name of the client that makes a call.
func clientOf(c audit.Call) string {
	name := strings.TrimSpace(c.Origin.Client + " " + c.Origin.ClientVersion)
	if c.Principal == mcpserver.LocalPrincipal {
		return cmp.Or(name, c.Principal)
	}
	return strings.TrimSpace(name + " as " + c.Principal)
}

// CallPlanned implements audit.Observer.
func (*hostRecord) CallPlanned(context.Context, audit.Call, audit.Record) {}

// CallEnded implements audit.Observer.
func (*hostRecord) CallEnded(context.Context, audit.Call, audit.Record, builtin.Result) {}

// runningHosts lists the hosts that serve on a state directory, oldest first, and removes what killed ones left.
func runningHosts(state string) ([]runningHost, error) {
	all := []runningHost{}
	dir := filepath.Join(state, hostsFolder)
	names, err := listedHosts(dir)
	if names == nil && err != nil {
		return nil, err
	}
	consoles, err := console.Find(state)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := privatefile.Read(filepath.Join(dir, name+".json"), maxHostFile)
		var h runningHost
		if err != nil || json.Unmarshal(raw, &h) != nil {
			continue // it has just begun or ended
		}
		for _, c := range consoles {
			if c.PID == h.PID {
				h.Console = cmp.Or(c.URL, "opened by toolhost console "+c.ID)
			}
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b runningHost) int { return cmp.Or(a.Since.Compare(b.Since), a.PID-b.PID) })
	return all, nil
}

func statusCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "List the hosts that run", Args: cobra.NoArgs,
		Long: `List the hosts that run on the state directory: process, transport and address, roots, who has called, since
when, and where the console is, and in which workspaces protected files are held. The link that opens a console is
printed by toolhost console alone.`,
		Example: "  toolhost status --json | jq -r '.[].roots[]'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := flags.ownState()
			if err != nil {
				return err
			}
			all, err := runningHosts(state)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			if err := printHosts(cmd.OutOrStdout(), all); err != nil {
				return err
			}
			for _, line := range heldLines(state) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printHosts(w io.Writer, all []runningHost) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no host runs")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PID\tTRANSPORT\tSINCE\tROOTS\tCLIENTS\tCONSOLE")
	for _, h := range all {
		transport := strings.TrimSpace(h.Transport + " " + h.Address)
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", h.PID, sanitized(transport),
			h.Since.Local().Format("2006-01-02 15:04"),
			sanitized(strings.Join(h.Roots, ", ")), sanitized(cmp.Or(strings.Join(h.Clients, ", "),
				"-")), cmp.Or(h.Console, "-"))
	}
	return table.Flush()
}
