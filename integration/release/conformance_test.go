//go:build slow

package release

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// The official conformance suite judges a server with its fixtures after our own door and pipeline. It is
// run when TOOLHOST_CONFORMANCE names the directory in which npm installed it, best with a node of its own:
//
//	npm install --prefix DIR node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
func TestConformance(t *testing.T) { judgeServer(t) }

// TestConformanceRelay has the suite judge the same server as the far side of toolhost remote.
func TestConformanceRelay(t *testing.T) { judgeServer(t, host.Binary) }

// conformanceDir is the program that serves the suite's fixtures.
const conformanceDir = "../../cmd/toolhost/internal/conformance"

// judgeServer has the suite judge the server with its fixtures, in both eras.
func judgeServer(t *testing.T, relay ...string) {
	node, suite := conformanceSuite(t)
	url := startFixtures(t, relay...)
	for _, run := range []struct {
		name     string
		args     []string
		expected string // what may fail, each with its reason
		passed   int    // at least
	}{
		{"2026-07-28", []string{"--requirements", "2026-07-28"}, "expected-2026-07-28.yml", 196},
		{"2025-11-25", []string{"--requirements", "2025-11-25"}, "expected-2025-11-25.yml", 80},
	} {
		t.Run(run.name, func(t *testing.T) {
			args := append([]string{suite, "server", "--url", url, "-o", host.TempDir(t),
				"--expected-failures", filepath.Join(conformanceDir, run.expected)}, run.args...)
			out, err := exec.Command(node, args...).CombinedOutput()
			summary := string(out[max(0, strings.Index(string(out), "=== SUMMARY")):])
			if err != nil {
				t.Fatalf("%v\n%s", err, summary)
			}
			total := regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`).FindStringSubmatch(summary)
			if total == nil {
				t.Fatalf("no total in\n%s", summary)
			}
			t.Log(total[0])
			if n, _ := strconv.Atoi(total[1]); n < run.passed {
				t.Errorf("%d checks passed, %d are expected\n%s", n, run.passed, summary)
			}
		})
	}
}

// clientScenarios are those that the suite judges a client by, without the ones of what the gateway does not have:
// auth/enterprise-managed-authorization (an identity provider of an organization that exchanges the login of its user for one to the
// server), and sep-2640-* (skills; nothing is judged of a client that reads none). The first seven are a sample.
var clientScenarios = []string{
	"request-metadata", "tools_call", "auth/metadata-var2", "auth/iss-supported-missing", "auth/scope-step-up",
	"auth/client-credentials-jwt", "http-invalid-tool-headers",
	"initialize", "sse-retry", "http-standard-headers", "http-custom-headers", "json-schema-ref-no-deref",
	"json-schema-2020-12-preservation", "elicitation-sep1034-client-defaults", "sep-2322-client-request-state",
	"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var3", "auth/scope-from-www-authenticate",
	"auth/scope-omitted-when-undefined", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
	"auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported", "auth/iss-supported",
	"auth/scope-from-scopes-supported", "auth/scope-retry-limit",
	"auth/iss-not-advertised", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized", "auth/metadata-issuer-mismatch",
	"auth/pre-registration", "auth/client-credentials-basic", "auth/authorization-server-migration",
	"auth/basic-cimd", "auth/wif-jwt-bearer", "auth/dpop", "auth/dpop-nonce",
	"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback",
}

// TestConformanceClient has the suite judge the gateway as a client of servers of both eras, and its logins. With -samples=100 all scenarios run.
func TestConformanceClient(t *testing.T) {
	node, suite := conformanceSuite(t)
	client, err := filepath.Abs("testdata/conformance-client.py")
	if err != nil {
		t.Fatal(err)
	}
	scenarios := clientScenarios
	if !samples.Whole() {
		scenarios = scenarios[:7]
	}
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(node, suite, "client", "--command", client, "--scenario", scenario, "-o",
				host.TempDir(t))
			cmd.Env = append(os.Environ(), "TOOLHOST="+host.Binary)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out[max(0, strings.Index(string(out), "Test Results")):])
			}
		})
	}
}

// conformanceSuite finds the suite and a node that can run it.
func conformanceSuite(t *testing.T) (node, suite string) {
	t.Helper()
	dir := os.Getenv("TOOLHOST_CONFORMANCE")
	if dir == "" {
		t.Skip("TOOLHOST_CONFORMANCE does not name the directory of the conformance suite")
	}
	suite = filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Fatalf("TOOLHOST_CONFORMANCE: %v", err)
	}
	node = filepath.Join(dir, "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	version, err := exec.Command(node, "--version").Output()
	if err != nil {
		t.Skipf("the conformance suite needs node: %v", err)
	}
	const oldest = 22
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, _ := strconv.Atoi(major); n < oldest {
		t.Skipf("the conformance suite needs node %d, this is %s", oldest, version)
	}
	return node, suite
}

// startFixtures serves the suite's fixtures until the test ends, through a relay if its program is given.
func startFixtures(t *testing.T, relay ...string) (url string) {
	t.Helper()
	program := filepath.Join(host.TempDir(t), "conformance")
	if out, err := exec.Command("go", "build", "-o", program, conformanceDir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, relay...)
	home := host.TempDir(t)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"XDG_CACHE_HOME="+home)
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not end well: %v\n%s", err, log)
		}
	})
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server said no address: %v", err)
	}
	return strings.TrimSpace(url)
}
