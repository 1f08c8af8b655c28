package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

const (
	// account is the directory with the account of a pod.
	account = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenTime is how long a token that was read from a file is used before the file is read again.
	tokenTime = time.Minute
	// pluginTime is how long a program that logs in may take.
	pluginTime = time.Minute
	// early is how long before its end a credential is renewed.
	early = 30 * time.Second
)

// Open reads the configuration of kubectl for a context; empty: the current one, or in a pod without a configuration
// its account.
func Open(ctx context.Context, kubeContext string) (*Client, error) {
	if kubeContext == "" && inPod() {
		return podClient()
	}
	args := []string{"config", "view", "--raw", "--minify", "--flatten", "-o", "json"}
	if kubeContext != "" {
		args = append(args, "--context", kubeContext)
	}
	raw, err := output(hostprogram.Command(ctx, "kubectl", args...))
	if err != nil {
		return nil, fmt.Errorf("the configuration of kubectl cannot be read: %w", err)
	}
	var v view
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("the configuration of kubectl cannot be read: %w", err)
	}
	return v.client()
}

// inPod reports whether this program has the account of a pod, and no configuration that counts before it.
func inPod() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBECONFIG") != "" {
		return false
	}
	if home, err := os.UserHomeDir(); err == nil {
		if _, err := os.Stat(filepath.Join(home, ".kube", "config")); err == nil {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(account, "token"))
	return err == nil
}

func podClient() (*Client, error) {
	ca, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	server := "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return newClient(cluster{Server: server, CA: ca}, &login{user: user{TokenFile: filepath.Join(account, "token")}})
}

// A view is what kubectl prints of its configuration: one cluster and one user.
type view struct {
	Clusters []struct{ Cluster cluster }
	Users    []struct{ User user }
}

type cluster struct {
	Server     string
	CA         []byte `json:"certificate-authority-data"`
	Insecure   bool   `json:"insecure-skip-tls-verify"`
	ServerName string `json:"tls-server-name"`
	Proxy      string `json:"proxy-url"`
}

type user struct {
	Token, TokenFile   string
	Username, Password string
	Certificate        []byte `json:"client-certificate-data"`
	Key                []byte `json:"client-key-data"`
	As                 string
	Exec               *plugin
	Provider           json.RawMessage `json:"auth-provider"`
}

// A plugin is a program that logs in.
type plugin struct {
	APIVersion string
	Command    string
	Args       []string
	Env        []struct{ Name, Value string }
}

func (v view) client() (*Client, error) {
	if len(v.Clusters) == 0 {
		return nil, errors.New("the configuration of kubectl names no cluster: see kubectl config get-contexts")
	}
	l := &login{}
	if len(v.Users) > 0 {
		l.user = v.Users[0].User
	}
	if l.user.Provider != nil || l.user.As != "" {
		return nil, errors.New("the configuration of kubectl has auth-provider or as for this user, which toolhost " +
			"does not know: use a plugin, a token or a certificate")
	}
	return newClient(v.Clusters[0].Cluster, l)
}

func newClient(c cluster, l *login) (*Client, error) {
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("the configuration of kubectl names the server %q, which is no address", c.Server)
	}
	secured := &tls.Config{
		ServerName: c.ServerName, InsecureSkipVerify: c.Insecure, GetClientCertificate: l.clientCertificate,
	}
	if len(c.CA) > 0 {
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("the certificate-authority-data of the cluster hold no certificate")
		}
	}
	transport := func(two bool) *http.Transport {
		t := &http.Transport{
			TLSClientConfig: secured.Clone(), TLSHandshakeTimeout: answerTime, Proxy: http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: answerTime}).DialContext,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, Protocols: new(http.Protocols),
		}
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(two)
		if proxy, err := url.Parse(c.Proxy); err == nil && c.Proxy != "" {
			t.Proxy = http.ProxyURL(proxy)
		}
		return t
	}
	return &Client{server: strings.TrimSuffix(c.Server, "/"), login: l, web: transport(true),
		plain: transport(false)}, nil
}

// A login has the credentials of a user and renews them.
type login struct {
	user user

	mu          sync.Mutex
	token       string
	certificate *tls.Certificate
	until       time.Time // when the credentials are renewed; zero: never
	ready       bool
}

// renews reports whether other credentials may be there when these are refused.
func (l *login) renews() bool { return l.user.Exec != nil || l.user.TokenFile != "" }

// sign puts the credentials into a request.
func (l *login) sign(r *http.Request, renew bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(r.Context(), renew); err != nil {
		return err
	}
	if l.token != "" {
		r.Header.Set("Authorization", "Bearer "+l.token)
	} else if l.user.Username != "" {
		r.SetBasicAuth(l.user.Username, l.user.Password)
	}
	return nil
}

// clientCertificate returns the certificate for a TLS handshake. The request that connects was signed before, which has
// refreshed the certificate.
func (l *login) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.certificate == nil {
		return &tls.Certificate{}, nil
	}
	return l.certificate, nil
}

// refresh gets the credentials when there are none, when they end, or when they were refused.
func (l *login) refresh(ctx context.Context, renew bool) (err error) {
	if l.ready && !renew && (l.until.IsZero() || time.Now().Before(l.until)) {
		return nil
	}
	credential := credential{Token: l.user.Token, Certificate: string(l.user.Certificate), Key: string(l.user.Key)}
	l.until = time.Time{}
	switch {
	case l.user.Exec != nil:
		if credential, err = l.user.Exec.run(ctx); err != nil {
			return err
		}
		if !credential.Expires.IsZero() {
			l.until = credential.Expires.Add(-early)
		}
	case l.user.TokenFile != "":
		raw, err := os.ReadFile(l.user.TokenFile)
		if err != nil {
			return fmt.Errorf("the tokenFile of the user in the kubeconfig: %w", err)
		}
		credential.Token, l.until = strings.TrimSpace(string(raw)), time.Now().Add(tokenTime)
	}
	l.token = credential.Token
	if credential.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(credential.Certificate), []byte(credential.Key))
		if err != nil {
			return fmt.Errorf("the client certificate of the user: %w", err)
		}
		l.certificate = &pair
	}
	l.ready = true
	return nil
}

// A credential is what a plugin prints.
type credential struct {
	Token       string
	Certificate string    `json:"clientCertificateData"`
	Key         string    `json:"clientKeyData"`
	Expires     time.Time `json:"expirationTimestamp"`
}

// run logs in with the program.
func (p *plugin) run(ctx context.Context) (credential, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginTime)
	defer cancel()
	cmd := hostprogram.Command(ctx, p.Command, p.Args...)
	cmd.Env = append(cmd.Environ(),
		`KUBERNETES_EXEC_INFO={"apiVersion":"`+p.APIVersion+`","kind":"ExecCredential","spec":{"interactive":false}}`)
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	var answer struct{ Status credential }
	raw, err := output(cmd)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		return credential{}, fmt.Errorf("%s, which logs in to the cluster, failed: %w", p.Command, err)
	}
	return answer.Status, nil
}

// output runs a program and returns what it prints. Its error says what it complained about.
func output(cmd *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	raw, err := cmd.Output()
	if text := strings.Join(strings.Fields(complaint.String()), " "); err != nil && text != "" {
		err = fmt.Errorf("%s (%w)", text, err)
	}
	return raw, err
}
