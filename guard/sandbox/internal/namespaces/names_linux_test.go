package namespaces

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Names of the loopback interface stay, and other databases; addresses of other machines are found outside.
func TestNameFilesKeep(t *testing.T) {
	for _, c := range []struct{ path, host, has, lacks string }{
		{"/etc/hosts", "127.0.0.1\tapp.local # mine\n10.0.0.9 db.corp", "127.0.0.1\tapp.local # mine\n", "db.corp"},
		{"/etc/hosts", "127.0.0.1 app.local", "127.0.0.1 app.local\n", "127.0.0.1 app.localx"},
		{"/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 app", "127.0.0.1 localhost\n127.0.0.1 app\n", "::1"},
		{"/etc/hosts", "::1 localhost\n", "::1 localhost\n", "127.0.0.1"},
		{"/etc/hosts", "#127.0.0.1 localhost\n10.0.0.9 localhost", "127.0.0.1 localhost\n::1 localhost", "10.0.0.9"},
		{"/etc/hosts", "127.0.0.1 " + hostname(), "127.0.0.1 " + hostname() + "\n", "127.0.1.1"},
		{"/etc/hosts", "10.0.0.9 " + hostname(), "127.0.1.1 " + hostname() + "\n", "10.0.0.9"},
		{"/etc/hosts", "", "127.0.0.1 localhost\n", "nothing"},
		{"/etc/nsswitch.conf", "passwd: files ldap\nhosts: resolve [!UNAVAIL=return] dns\ngroup: files", "passwd: files ldap\ngroup: files\n", "resolve"},
		{"/etc/nsswitch.conf", "", "hosts: files dns\n", "resolve"},
		{"/etc/resolv.conf", "nameserver 8.8.8.8\nsearch corp", "nameserver 198.18.0.1\n", "corp"},
	} {
		i := slices.IndexFunc(nameFiles, func(f nameFile) bool { return f.path == c.path })
		if got := nameFiles[i].content(c.host); !strings.Contains(got, c.has) || strings.Contains(got, c.lacks) {
			t.Errorf("%s of %q is\n%s", c.path, c.host, got)
		}
	}
}

func hostname() string {
	name, _ := os.Hostname()
	return name
}
