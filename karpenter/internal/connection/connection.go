// Package connection reaches bringup: over a unix socket, or over TLS on which both sides show a
// certificate.
package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// Limit is how long any call may take. Bringup keeps to it too, and goes on by itself with what
	// it could not finish in time.
	Limit = 10 * time.Second
	// A few thousand sizes with all their offerings stay below it.
	largestAnswer = 64 << 20
)

// Open prepares the connection. It is made, and made again, when there is something to ask.
func Open(options *Options, limit time.Duration) (*grpc.ClientConn, error) {
	transport, err := options.transport()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(options.Address,
		grpc.WithTransportCredentials(transport),
		grpc.WithUnaryInterceptor(within(limit)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestAnswer)),
		// It is in the cluster: proxies to the outside do not lead there.
		grpc.WithNoProxy(),
		// A bringup that was restarted is found again within seconds, and one that vanished is
		// noticed before the kernel does.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: limit,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: Limit, PermitWithoutStream: true}),
	)
}

func within(limit time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return call(ctx, method, request, answer, connection, options...)
	}
}

func (o *Options) transport() (credentials.TransportCredentials, error) {
	if strings.HasPrefix(o.Address, "unix:") {
		return insecure.NewCredentials(), nil
	}
	if o.AuthorityFile == "" || o.CertificateFile == "" || o.KeyFile == "" {
		return nil, fmt.Errorf("provider-address is %q, and only a unix socket does without provider-ca-file, provider-cert-file and provider-key-file", o.Address)
	}
	authority, err := os.ReadFile(o.AuthorityFile)
	if err != nil {
		return nil, fmt.Errorf("reading provider-ca-file, %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(authority) {
		return nil, errors.New("provider-ca-file holds no certificate: " + o.AuthorityFile)
	}
	if _, err := o.certificate(nil); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:           tls.VersionTLS13,
		RootCAs:              authorities,
		ServerName:           o.ServerName,
		GetClientCertificate: o.certificate,
	}), nil
}

func (o *Options) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	certificate, err := tls.LoadX509KeyPair(o.CertificateFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading provider-cert-file and provider-key-file, %w", err)
	}
	return &certificate, nil
}
