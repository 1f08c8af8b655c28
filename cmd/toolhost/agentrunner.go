package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/guard/statedir"
	"github.com/toolhost/toolhost/mcpserver"
)

// agentRunner fills in the runner that agent.runner of the settings names.
func agentRunner(host *mcpserver.Host, text string, into *builtin.Env) error {
	client, err := runnerClient(text, into)
	if err != nil {
		return fmt.Errorf("agent.runner: %w", err)
	}
	r := &into.Agents.Runner
	if r.Command, err = findProgram(r.Command); err != nil {
		return fmt.Errorf("agent.runner: %w", err)
	}
	r.Cell = func(spec *builtin.CellSpec) error { return agentCell(host, into, client, spec) }
	return nil
}

// runnerClient fills in the known settings of a runner, and returns the runner as a client. An object without
// arguments adds to the known settings of its command.
func runnerClient(text string, into *builtin.Env) (*clients.Client, error) {
	r := &into.Agents.Runner
	own := strings.HasPrefix(text, "{")
	r.Name = text
	if own {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(r); err != nil {
			return nil, fmt.Errorf("expected an object with command, args, model, resume, parse, env, hosts and config: %w", err)
		}
		if r.Command == "" {
			return nil, errors.New("the object names no command")
		}
		r.Name = filepath.Base(r.Command)
	}
	var run clients.Run
	client, err := clients.Find(r.Name)
	switch {
	case err == nil && client.Runs != nil && client.Runs.Agent != nil && len(r.Args) == 0:
		run = *client.Runs
		how := run.Agent
		r.Name, r.Command, r.Args, r.Parse = client.Program, cmp.Or(r.Command,
			client.Program), how.Args, cmp.Or(r.Parse, how.Parse)
		if r.Model == nil {
			r.Model = how.Model
		}
		if r.Resume == nil {
			r.Resume = how.Resume
		}
		env := maps.Clone(how.Env)
		if env == nil {
			env = map[string]string{}
		}
		maps.Copy(env, r.Env)
		r.Env = env
	case own:
		if client, err = clients.Find("claude-code"); err != nil { // other clients also read its entry format
			return nil, err
		}
		client.Name, run = r.Name, clients.Run{Agent: &clients.Agent{}}
	default:
		var known []string
		for _, c := range clients.All() {
			if c.Runs != nil && c.Runs.Agent != nil {
				known = append(known, c.Program)
			}
		}
		return nil, fmt.Errorf("%q is not a runner: expected %s, or an object with command and args", text,
			strings.Join(known, ", "))
	}
	run.Hosts = slices.Concat(run.Hosts, r.Hosts)
	for _, dir := range r.Config {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = "$HOME/" + rest
		}
		run.Layers = append(slices.Clip(run.Layers), dir)
	}
	client.Runs = &run
	return &client, nil
}

// agentCell sets what a runner's cell contains besides its program.
func agentCell(host *mcpserver.Host, into *builtin.Env, client *clients.Client, spec *builtin.CellSpec) (err error) {
	env, err := clients.System()
	if err != nil {
		return err
	}
	roots := host.Operator().Roots()
	state := filepath.Join(runState(host.Operator().StateDir(), client.Name), "agents")
	removeOldLayers(state)
	known := &runClient{name: client.Name, env: env, client: client, needs: client.Runs.OnPlatform(env),
		state: filepath.Join(state, spec.Agent.ID), alone: true}
	if spec.Hosts, spec.Ports, err = splitHosts(known.hosts()); err != nil {
		return err
	}
	if err := known.files(spec, roots); err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(known.state), now, now) // see removeOldLayers
	passed := into.Inherited()
	spec.Env = slices.DeleteFunc(clientEnv(host), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(passed, entry) && !slices.Contains(client.Runs.URLs, name)
	})
	spec.Prepare = func(spec *builtin.CellSpec, dir, socket string) error {
		more, err := known.entry(spec, dir, socket)
		if err != nil {
			return err
		}
		spec.Argv = slices.Concat(spec.Argv[:1], more, spec.Argv[1:])
		into.Agents.Runner.Fill(spec, known.entryFile(dir), ownProgram(), socket)
		return nil
	}
	return nil
}

// layerAge is how long an agent's private directories are kept after its last start. The agent can be continued
// within that time.
const layerAge = 7 * 24 * time.Hour

// removeOldLayers removes the private directories of agents that are not continued any more.
func removeOldLayers(dir string) {
	// Directories that cannot be removed are tried again at the next start.
	_ = statedir.SweepDir(dir, statedir.Limits{Age: layerAge}, statedir.All)
}
