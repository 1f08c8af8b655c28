package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/console"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

// farFlags are the flags of commands that look at the host of a target.
type farFlags struct {
	name   string
	target targetFlags
}

func (f *farFlags) add(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&f.name, "remote", "", usage)
	f.target.add(flags)
}

// options returns the arguments of toolhost remote for these flags. It makes paths of this machine absolute.
func (f *farFlags) options() (args []string, err error) {
	if _, err := parseTarget(f.name); err != nil {
		return nil, err
	}
	if f.target.binary != "" {
		path, err := filepath.Abs(f.target.binary)
		if err != nil {
			return nil, err
		}
		args = append(args, "--binary="+path)
	}
	if f.target.farDir != "" {
		args = append(args, "--far-dir="+f.target.farDir)
	}
	return args, nil
}

// with opens a link to the target while do runs.
func (f *farFlags) with(cmd *cobra.Command, roots []string, do func(context.Context, *remote.Near) error) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	target, err := parseTarget(f.name)
	if err != nil {
		return err
	}
	near := f.target.near(ctx, cmd.ErrOrStderr(), target, roots, nil, nil)
	defer func() { cancel(); <-near.Done() }()
	return do(ctx, near)
}

// console opens the console of the host of the target.
func (f *farFlags) console(cmd *cobra.Command, roots []string, listen string) error {
	return f.with(cmd, roots, func(ctx context.Context, near *remote.Near) error {
		var i console.Instance
		if err := remote.ReadAbout(ctx, near, remote.ConsolePath, &i); err != nil {
			return err
		}
		return forwardConsole(cmd, i, func(ctx context.Context) (net.Conn, error) {
			return remote.Tunnel(ctx, near, remote.ConsolePath+"?id="+url.QueryEscape(i.ID))
		}, listen)
	})
}

// examine reports the link to the target, and what the host there reports of itself.
func (f *farFlags) examine(cmd *cobra.Command, roots []string) []doctor.Finding {
	began := time.Now()
	var about farAbout
	err := f.with(cmd, roots, func(ctx context.Context, near *remote.Near) error {
		return remote.ReadAbout(ctx, near, remote.AboutPath, &about)
	})
	if err != nil {
		return []doctor.Finding{{Level: doctor.LevelFail, About: "link", Text: err.Error(),
			Remedy: "see what it says, and repeat this command"}}
	}
	link := doctor.Finding{Level: doctor.LevelOK, About: "link", Text: fmt.Sprintf("%s: answered within %s, toolhost %s, "+
		"serving %s",
		f.name, time.Since(began).Round(time.Millisecond), about.Version, strings.Join(about.Roots, ", "))}
	if about.Version != versionString() {
		link.Level, link.Text = doctor.LevelWarn, link.Text+"; this is toolhost "+versionString()
		link.Remedy = "leave --binary out, or name the program of this version"
	}
	return append([]doctor.Finding{link}, about.Findings...)
}
