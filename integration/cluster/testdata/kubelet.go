// Command kubelet answers kubectl exec as the kubelet of a node does: it runs the command in a directory of the pod
// below DIR, which stands for its file system. It is built by .ci/cluster.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const grace = 10 * time.Second

type pods string

// ExecInContainer implements remotecommand.Executor.
func (dir pods) ExecInContainer(ctx context.Context, pod, _, _ string, argv []string, in io.Reader, out,
	errors_ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	home := filepath.Join(string(dir), pod)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(home, "workspace")
	if err := os.MkdirAll(cmd.Dir, 0o700); err != nil {
		return err
	}
	cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" +
		os.Getenv("TMPDIR")}
	cmd.Stdout, cmd.Stderr = out, errors_
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe() // what does not come from the client must not keep the command
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(stdin, in)
		stdin.Close()
	}()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

func (dir pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // exec, namespace, pod, container
	if len(parts) != 4 || parts[0] != "exec" {
		http.NotFound(w, r)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, dir, parts[2], "", parts[3], r.URL.Query()["command"], options, time.Hour, grace,
		remotecommand.SupportedStreamingProtocols)
}

func main() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(l, pods(os.Args[1])))
}
