//go:build slow

// Package cluster tries workspaces in sandboxes of Kubernetes against a real API server and a real kubectl. The engine
// and the node are scripted: what they decide is what is tried.
package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

func TestMain(m *testing.M) { host.Main(m) }

// A cluster is an API server with the objects of .release/agent-sandbox, and a node.
type cluster struct {
	t        *testing.T
	programs string // the directory with them
	dir      string
	server   string // its address
	admin    string // the configuration of kubectl with all rights
}

// newCluster starts a cluster.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	programs := os.Getenv("TOOLHOST_CLUSTER")
	if programs == "" {
		t.Skip("TOOLHOST_CLUSTER does not name the directory that .ci/cluster made")
	}
	c := &cluster{t: t, programs: programs, dir: host.TempDir(t)}
	etcd, peer := "http://"+freeAddress(t), "http://"+freeAddress(t)
	c.start("etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	key := c.put("account.pem", string(newKey(t)))
	tokens := c.put("tokens.csv", "admin-token,admin,1,system:masters\nalice-token,alice,2\nnobody-token,nobody,3\n")
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	host.Must(t, err)
	c.server = "https://" + address
	c.start("kube-apiserver", "--etcd-servers", etcd, "--bind-address=127.0.0.1", "--secure-port", port, "--cert-dir",
		filepath.Join(c.dir, "certs"),
		"--authorization-mode=RBAC", "--token-auth-file", tokens, "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://cluster",
		"--service-account-key-file", key, "--service-account-signing-key-file", key, "--disable-admission-plugins=ServiceAccount",
		"--kubelet-preferred-address-types=InternalIP")
	c.admin = c.config("admin", map[string]any{"token": "admin-token"})
	host.Eventually(t, func() string {
		if out, err := c.try(c.admin, "", "get", "--raw", "/readyz"); err != nil {
			return out
		}
		return ""
	})
	crds, err := filepath.Glob("testdata/*.yaml")
	host.Must(t, err)
	for _, crd := range crds {
		c.kubectl("", "apply", "--server-side", "-f", crd)
	}
	manifests := filepath.Join(c.dir, "manifests")
	host.Must(t, os.CopyFS(manifests, os.DirFS("../../.release/agent-sandbox")))
	kustomization := filepath.Join(manifests, "kustomization.yaml")
	host.Must(t, os.WriteFile(kustomization, []byte(strings.Replace(host.Get(t, kustomization), "# components:", "components:", 1)), 0o600))
	host.Eventually(t, func() string { // a kind is served some time after it was defined
		out, err := c.try(c.admin, "", "apply", "-k", manifests)
		if err != nil {
			return out
		}
		return ""
	})
	c.addNode()
	(&engine{}).run(c)
	return c
}

// addNode starts the kubelet of a node.
func (c *cluster) addNode() {
	c.t.Helper()
	r, w, err := os.Pipe()
	host.Must(c.t, err)
	defer r.Close()
	cmd := c.command("kubelet", c.dir)
	cmd.Stdout = w
	cmd.Env = append(os.Environ(), "TMPDIR="+host.TempDir(c.t))
	c.run(cmd)
	w.Close()
	var port int
	_, err = fmt.Fscan(r, &port)
	host.Must(c.t, err)
	c.kubectl(fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node"},"status":{
		"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port), "create", "-f", "-")
}

// config writes a configuration of kubectl for a user.
func (c *cluster) config(name string, user map[string]any) string {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": c.server, "insecure-skip-tls-verify": true}}},
		"users":    []any{map[string]any{"name": "u", "user": user}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	host.Must(c.t, err)
	return c.put(name+".config", string(raw))
}

func (c *cluster) put(name, content string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	host.Must(c.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (c *cluster) command(program string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(c.programs, program), args...)
}

// start runs a program until the end of the test. Its output is kept in a file.
func (c *cluster) start(program string, args ...string) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.dir, program+".log"))
	host.Must(c.t, err)
	defer log.Close()
	cmd := c.command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	c.run(cmd)
}

func (c *cluster) run(cmd *exec.Cmd) {
	c.t.Helper()
	host.Must(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// try calls kubectl.
func (c *cluster) try(config, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "kubectl"),
		append([]string{"--kubeconfig", config}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return complaint.String(), err
	}
	return string(out), nil
}

// kubectl calls kubectl with all rights, which must succeed.
func (c *cluster) kubectl(input string, args ...string) string {
	c.t.Helper()
	out, err := c.try(c.admin, input, args...)
	if err != nil {
		c.t.Fatalf("kubectl %q: %v %s", args, err, out)
	}
	return out
}

// An object is what is read of any object of the API.
type object struct {
	Metadata struct {
		Name                string
		Labels, Annotations map[string]string
		Generation          int64
		OwnerReferences     []struct{ UID string }
		UID                 string
	}
	Spec struct {
		WarmPoolRef struct{ Name string }
		Lifecycle   struct {
			ShutdownTime   time.Time
			ShutdownPolicy string
		}
		OperatingMode string
	}
	Status struct{ Sandbox struct{ Name string } }
}

// objects lists objects of the namespace.
func (c *cluster) objects(kind string) ([]object, error) {
	var list struct{ Items []object }
	out, err := c.try(c.admin, "", "-n", "toolhost", "get", kind, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	return list.Items, err
}

// only returns the only object of a kind.
func (c *cluster) only(kind string) object {
	c.t.Helper()
	all, err := c.objects(kind)
	if err != nil || len(all) != 1 {
		c.t.Fatalf("the %s are %+v, %v", kind, all, err)
	}
	return all[0]
}

// toolhost runs toolhost with a configuration of kubectl and the kubectl of the cluster.
func (c *cluster) toolhost(config string, args ...string) (string, error) {
	cmd := exec.Command(host.Binary, args...)
	cmd.Env = c.environment(config)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) environment(config string) []string {
	env := host.CleanEnv(filepath.Join(c.dir, "home"))
	return append(env, "PATH="+c.programs+":"+os.Getenv("PATH"), "KUBECONFIG="+config)
}

// relay starts toolhost remote.
func (c *cluster) relay(config, target string, flags ...string) *host.Session {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	c.t.Cleanup(cancel)
	as := func(cmd *exec.Cmd) { cmd.Args = append([]string{cmd.Args[0], "remote", target}, cmd.Args[1:]...) }
	h, err := host.StartHostAs(ctx, as, host.StdioModern, c.dir, c.environment(config), flags...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = h.Cmd.Process.Kill() })
	return &host.Session{Host: h, T: c.t, Ctx: ctx}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	host.Must(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	host.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}
