package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// upgraded begins a WebSocket with a token, and sends a message.
const upgraded = `python3 - "$GITHUB_TOKEN" $(echo https://MINE | cut -c9-) <<'END'
import socket, ssl, sys
token, at = sys.argv[1:]
name, port = at.split(":")
s = ssl.create_default_context().wrap_socket(socket.create_connection((name, int(port))), server_hostname=name)
s.sendall(f"GET /ws HTTP/1.1\r\nHost: {at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
f = s.makefile("rb")
while f.readline().strip(): pass
s.sendall(b"hello\n")
print(f.readline().decode())
END
`

// TestHonestCredentials: programs that read tokens where they are used to log in with sentinels.
func TestHonestCredentials(t *testing.T) {
	g := newCredentialGround(t)
	host.WriteIn(t, g.Home, ".netrc", fmt.Sprintf("machine localhost login me password %s\nmachine %s login me password %[1]s\n", g.token, g.mine))
	home, _ := os.UserHomeDir()
	g.env = append(g.env, "RUSTUP_HOME="+filepath.Join(home, ".rustup"))
	s := g.start()
	for _, row := range samples.Of([]struct{ program, check, command, want string }{
		{"curl", "--version", `curl -sSi --http2 -H "Authorization: Bearer $GITHUB_TOKEN" https://MINE/ && echo x >f && curl -sS -u "__token__:$BY_FILE" -F :action=file_upload -F content=@f https://MINE/legacy/`, "HTTP/2 200"},
		{"cargo", "--version", `CARGO_HOME=$PWD/.cargo CARGO_REGISTRIES_MINE_INDEX=sparse+https://MINE/index/ CARGO_REGISTRIES_MINE_TOKEN=$BY_FILE CARGO_REGISTRIES_MINE_CREDENTIAL_PROVIDER=cargo:token cargo search --registry mine x`, `found-it = "1.2.3"`},
		{"gh", "--version", `export GH_HOST=$(echo https://MINE | cut -c9-) GH_ENTERPRISE_TOKEN=$GITHUB_TOKEN; unset GITHUB_TOKEN; gh auth status && gh api user`, "logged-in=true"},
		{"python3", "--version", upgraded, "echo hello"},
		{"go", "version", `GOPROXY=https://MINE GONOSUMDB=* GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE=$PWD/c GOMODCACHE=$PWD/m go list -m -versions example.com/x`, "example.com/x v1.2.3"},
		{"npm", "--version", `echo "$(echo https://MINE/ | cut -c7-):_authToken=$GITHUB_TOKEN" >npmrc; npm whoami --userconfig npmrc --cache "$PWD/n" --registry https://MINE/`, "me-of-npm"},
		{"node", "--version", `node -e 'fetch("https://MINE/", {headers: {authorization: "Bearer " + process.env.GITHUB_TOKEN}}).then(r => r.text()).then(console.log)'`, "logged-in=true"},
		{"python3", "-mpip", `python3 -m pip index versions found-it --index-url $(echo https://MINE | sed "s|//|//me:$GITHUB_TOKEN@|")/simple/`, "found-it (1.2.3)"},
		{"python3", "-cimport requests", `python3 -c '
import os, requests
print(requests.get("https://MINE/", headers={"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]}, auth=lambda r: r).text)
print(requests.get("https://MINE/").text)'`, "logged-in=true"},
	}, 1) {
		t.Run(row.program, func(t *testing.T) {
			if out, err := exec.Command(row.program, row.check).CombinedOutput(); err != nil {
				t.Skipf("%s %s: %v: %s", row.program, row.check, err, out)
			}
			said, _ := s.Try("Bash", host.Args{"command": strings.ReplaceAll(row.command, "https://MINE", "https://"+g.mine), "timeout": 60000})
			if !strings.Contains(said, row.want) || strings.Contains(said, "logged-in=false") {
				t.Errorf("%s: %q is missing in\n%s", row.command, row.want, said)
			}
			g.unseen("the result of "+row.program, said)
		})
	}
	s.End()
}
