package connection

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/env"
)

// Karpenter parses all flags together, and these among them.
func init() {
	options.Injectables = append(options.Injectables, &Options{})
}

type optionsKey struct{}

// Options hold the address of bringup and the identity that the client shows to it.
type Options struct {
	Address         string
	AuthorityFile   string
	CertificateFile string
	KeyFile         string
	ServerName      string
}

// AddFlags is part of options.Injectable.
func (o *Options) AddFlags(flags *options.FlagSet) {
	add := func(value *string, name, variable, normally, usage string) {
		flags.StringVar(value, name, env.WithDefaultString(variable, normally), usage)
	}
	add(&o.Address, "provider-address", "PROVIDER_ADDRESS", "unix:///run/bringup/provider.sock", "Where bringup answers: unix:///PATH, or HOST:PORT, which needs the three files")
	add(&o.AuthorityFile, "provider-ca-file", "PROVIDER_CA_FILE", "", "The authority of bringup's certificate, in PEM")
	add(&o.CertificateFile, "provider-cert-file", "PROVIDER_CERT_FILE", "", "Our certificate, in PEM; read anew for each connection")
	add(&o.KeyFile, "provider-key-file", "PROVIDER_KEY_FILE", "", "The key of our certificate, in PEM; read anew for each connection")
	add(&o.ServerName, "provider-server-name", "PROVIDER_SERVER_NAME", "", "The name in bringup's certificate, if it is not that of the address")
}

// Parse is part of options.Injectable.
func (o *Options) Parse(flags *options.FlagSet, arguments ...string) error {
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		return fmt.Errorf("parsing flags, %w", err)
	}
	return nil
}

// ToContext is part of options.Injectable.
func (o *Options) ToContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionsKey{}, o)
}

// FromContext returns what ToContext put in.
func FromContext(ctx context.Context) *Options {
	return ctx.Value(optionsKey{}).(*Options)
}
