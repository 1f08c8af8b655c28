package command

import (
	"strings"
	"testing"
)

// Programs take other words for the name of a subcommand: starts of it, other names, mistakes, names of the user's.
func TestNamesSubcommand(t *testing.T) {
	for _, tt := range []struct{ program, name, same, perhaps, other string }{
		{"npm", "publish", "publish publis pub pu", "", "run pack unpublish publisher version"},
		{"npm", "install", "i in ins add install instal isntall", "", "install-test it ci uninstall run"},
		{"npm", "ci", "ic install-clean install-cl clean-install installClean", "", "install config"},
		{"npm", "dist-tag", "distTag dist-tags dist dist-t", "", "dist-x docs"},
		{"npm", "uninstall", "r rm un unl remo remove", "", "update run"},
		{"hg", "push", "push pus", "zz deploy", "status st pull commit ci add log help"},
		{"hg", "update", "up co checkout upda", "", "pull"},
		{"gem", "install", "inst i instal", "", "list info push"},
		{"bundle", "install", "i inst insta", "", "exec info init outdated"},
		{"ip", "link", "l li link", "", "address route"},
		{"svn", "commit", "ci commit", "", "com co status st update"},
		{"cvs", "commit", "ci com commit", "", "checkout update"},
		{"composer", "require", "r req requ", "", "remove rm install validate"},
		{"gradle", "publishToMavenLocal", "pTML publishToM pubToMav", "", "publishX test pTXL build"},
		{"console", "doctrine:migrations:migrate", "d:m:m doctrine:mig:mig", "", "d:s:u cache:clear"},
		{"cargo", "publish", "publish", "zz p pub", "build b test t nextest clippy fmt xtask run"},
		{"gh", "release", "release", "zz rel", "pr issue api repo run"},
		{"git", "push", "push", "puhs psh pussh ush", "pu pus pull st co ci br lg stat unstage p save sync graph publish-docs"},
		{"git", "commit", "commit", "comit commti", "co com checkout st amend lg"},
		{"go", "install", "install", "", "inst i"},
		{"make", "deploy", "deploy", "", "d dep test"},
		{"docker", "run", "run", "", "r ru ps"},
	} {
		check := func(words string, same, perhaps bool) {
			for word := range strings.FieldsSeq(words) {
				if is, may := NamesSubcommand(tt.program, word, tt.name, true); is != same || may != perhaps {
					t.Errorf("%s %s is %s: %v, perhaps: %v, want %v, %v", tt.program, word, tt.name, is, may,
						same, perhaps)
				}
			}
		}
		check(tt.same, true, false)
		check(tt.perhaps, false, true)
		check(tt.other, false, false)
	}
	for _, tt := range []struct {
		program, word, name string
		want                bool
	}{{"ip", "del", "delete", true}, {"nmcli", "d", "delete", true}, {"npm", "dep", "deploy", false}, {"php", "migr",
		"migrate", true}, {"docker", "r", "rm", false}} {
		if same, _ := NamesSubcommand(tt.program, tt.word, tt.name, false); same != tt.want {
			t.Errorf("a later word of %s: %s is %s: %v", tt.program, tt.word, tt.name, same)
		}
	}
}
