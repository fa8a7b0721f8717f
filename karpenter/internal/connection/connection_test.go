package connection_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/bringup-dev/bringup/karpenter/internal/connection"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// authority signs certificates and writes them into a folder.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	signer := &authority{folder: t.TempDir()}
	signer.certificate, signer.key = signer.sign(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return signer
}

// sign writes NAME.crt and NAME.key. The first certificate is its own signer.
func (a *authority) sign(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	a.write(t, name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	a.write(t, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate, key
}

func (a *authority) signClient(t *testing.T) {
	t.Helper()
	a.sign(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) write(t *testing.T, name string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(a.file(name), content, 0o600))
}

func (a *authority) file(name string) string {
	return filepath.Join(a.folder, name)
}

// serve answers clients with a certificate of this authority; its name is bringup.
func (a *authority) serve(t *testing.T) string {
	t.Helper()
	a.sign(t, "server", &x509.Certificate{DNSNames: []string{"bringup"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	certificate, err := tls.LoadX509KeyPair(a.file("server.crt"), a.file("server.key"))
	must(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(a.certificate)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	})))
	providerpb.RegisterProviderServer(server, providerpb.UnimplementedProviderServer{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func (a *authority) options(address string) *connection.Options {
	return &connection.Options{
		Address:         address,
		AuthorityFile:   a.file("ca.crt"),
		CertificateFile: a.file("client.crt"),
		KeyFile:         a.file("client.key"),
		ServerName:      "bringup",
	}
}

// answered reports whether a server answered, if only that the call is not implemented.
func answered(t *testing.T, options *connection.Options) bool {
	t.Helper()
	open, err := connection.Open(options, time.Minute)
	must(t, err)
	defer func() { _ = open.Close() }()
	_, err = providerpb.NewProviderClient(open).List(t.Context(), &providerpb.ListRequest{})
	switch status.Code(err) {
	case codes.Unimplemented:
		return true
	case codes.Unavailable:
		return false
	default:
		t.Fatal(err)
		return false
	}
}

func TestBothSidesShowACertificate(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	address := ours.serve(t)
	ours.signClient(t)
	foreign.signClient(t)
	if !answered(t, ours.options(address)) {
		t.Error("the right certificate is refused")
	}
	stranger := ours.options(address)
	stranger.CertificateFile, stranger.KeyFile = foreign.file("client.crt"), foreign.file("client.key")
	if answered(t, stranger) {
		t.Error("a certificate of another authority is accepted")
	}
	misled := ours.options(address)
	misled.AuthorityFile = foreign.file("ca.crt")
	if answered(t, misled) {
		t.Error("a server of another authority is believed")
	}
	confused := ours.options(address)
	confused.ServerName = "another-host"
	if answered(t, confused) {
		t.Error("a server of another name is believed")
	}
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	address := ours.serve(t)
	foreign.signClient(t)
	options := ours.options(address)
	options.CertificateFile, options.KeyFile = foreign.file("client.crt"), foreign.file("client.key")
	open, err := connection.Open(options, time.Minute)
	must(t, err)
	defer func() { _ = open.Close() }()
	client := providerpb.NewProviderClient(open)
	if _, err := client.List(t.Context(), &providerpb.ListRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	ours.signClient(t)
	for _, name := range []string{"client.crt", "client.key"} {
		renewed, err := os.ReadFile(ours.file(name))
		must(t, err)
		foreign.write(t, name, renewed)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := client.List(t.Context(), &providerpb.ListRequest{})
		if status.Code(err) == codes.Unimplemented {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestWhatIsMissingForTLSIsNamedAtTheStart(t *testing.T) {
	ours := newAuthority(t)
	ours.signClient(t)
	ours.write(t, "empty", nil)
	for expected, change := range map[string]func(*connection.Options){
		"only a unix socket does without": func(options *connection.Options) { options.KeyFile = "" },
		"reading provider-ca-file":        func(options *connection.Options) { options.AuthorityFile = ours.file("absent") },
		"provider-ca-file holds no":       func(options *connection.Options) { options.AuthorityFile = ours.file("empty") },
		"reading provider-cert-file":      func(options *connection.Options) { options.CertificateFile = ours.file("empty") },
	} {
		options := ours.options("127.0.0.1:1")
		change(options)
		if _, err := connection.Open(options, time.Minute); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%v does not say %q", err, expected)
		}
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Setenv("PROVIDER_ADDRESS", "bringup-flex:9443")
	t.Setenv("PROVIDER_SERVER_NAME", "bringup")
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	parsed := &connection.Options{}
	parsed.AddFlags(flags)
	must(t, parsed.Parse(flags, "--provider-address=unix:///run/other.sock", "--provider-ca-file=/ca"))
	expected := connection.Options{Address: "unix:///run/other.sock", ServerName: "bringup", AuthorityFile: "/ca"}
	if actual := connection.FromContext(parsed.ToContext(t.Context())); *actual != expected {
		t.Errorf("%v", actual)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
