package baseline

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/gitrepo"
)

// The list is sorted, without twins, and each line is understood.
func TestExecutingList(t *testing.T) {
	var lines []string
	for line := range strings.Lines(executingText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 || conditions[fields[1]] == nil || effects[fields[2]] == "" ||
			fields[0] != strings.ToLower(fields[0]) {
			t.Errorf("not understood: %q", line)
		}
		lines = append(lines, line)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(lines))); !slices.Equal(lines, sorted) {
		t.Error("the list is not sorted, or has twins")
	}
}

func TestExecutes(t *testing.T) {
	for _, line := range []string{
		"http.proxy=x", "http.https://a.b/.proxy=x", "http.sslverify=false", "http.https://a.b/.sslverify=0", "http.extraheader=x", "remote.o.proxy=x",
		"url.git@evil:.insteadof=https://github.com/", "http.curloptresolve=x", "annex.youtube-dl-command=x", "annex.x-store-hook=x", "remote.o.annex-ssh-options=x",
		"remote.o.annex-externaltype=x", "svn.authorsprog=x", "stgit.editor=x", "stgit.alias.a=!x", "tig.bind.generic=x", "tig.editor=x", "guitool.a.b.cmd=x", "gui.editor=x",
		"delta.pager=x", "gitflow.path.hooks=x", "lfs.customtransfer.a.path=x", "lfs.https://a/.standalonetransferagent=x", "lfs.extension.a.clean=x",
		"difftool.a.cmd=x", "mergetool.a.b.path=x", "sendemail.a.smtpserver=x", "sendemail.smtpserver=x", "sendemail.tocmd=x", "interactive.difffilter=x",
		"credential.helper=x", "credential.https://a.b.helper=x", "gpg.x509.program=x", "core.sshcommand=x", "core.askpass=x", "core.hookspath=x", "include.path=x",
		"includeif.gitdir:a.b/.path=x", "filter.a.b.process=x", "filter.a.required=true", "merge.a.driver=x", "merge.a.name=x", "diff.a.textconv=x", "remote.a.b.vcs=x", "submodule.a.update=!x", "alias.a=!x",
		"alias.a=-c x=y log", "trailer.a.cmd=x", "browser.a.cmd=x", "man.a.path=x", "instaweb.modulepath=x", "secrets.providers=x", "core.fsmonitor=./x", "pager.log=x",
		"remote.o.url=ext::sh -c x", "tar.x.command=x", "hook.a.command=x",
	} {
		key, value, _ := strings.Cut(line, "=")
		if i := strings.Index(line, "/.insteadof"); i > 0 {
			key, value = line[:i+len("/.insteadof")], "x"
		}
		if executes(gitrepo.Setting{Key: key, Value: value}) == "" {
			t.Errorf("%s is left", line)
		}
	}
	for _, line := range []string{
		"user.name=x", "user.email=x", "remote.o.url=https://a.b/c", "remote.o.fetch=+refs/heads/*:refs/remotes/o/*", "remote.o.pushurl=x", "branch.a.remote=o", "branch.a.merge=x",
		"branch.http.proxy.remote=o", "core.bare=false", "core.autocrlf=input", "core.filemode=true", "core.fsmonitor=true", "core.sparsecheckout=true", "core.excludesfile=x",
		"extensions.worktreeconfig=true", "extensions.partialclone=o", "remote.o.promisor=true", "submodule.a.url=../a", "submodule.a.active=true", "submodule.a.update=rebase",
		"alias.st=status -s", "http.sslverify=true", "http.postbuffer=1", "lfs.https://a/info/lfs.locksverify=true", "lfs.repositoryformatversion=0", "gitflow.branch.master=main",
		"gitflow.prefix.feature=feature/", "commit.gpgsign=true", "pull.rebase=true", "push.default=simple", "rebase.autosquash=true", "merge.conflictstyle=diff3", "diff.algorithm=patience",
		"diff.a.xfuncname=x", "pager.log=false", "color.ui=auto", "annex.uuid=x", "annex.version=10", "svn-remote.svn.url=x", "svn-remote.svn.fetch=x", "gui.recentrepo=x", "merge.tool=vimdiff",
		"delta.navigate=true", "core.hookspathx=x", "maintenance.auto=false", "gc.auto=0",
	} {
		key, value, _ := strings.Cut(line, "=")
		if why := executes(gitrepo.Setting{Key: key, Value: value}); why != "" {
			t.Errorf("%s is taken out: %s", line, why)
		}
	}
}
