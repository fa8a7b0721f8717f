// etcd, as small as the testbed needs it: one member, data in a directory that
// dies with the test. Its flags are a subset of upstream etcd's, so that either
// program can be started with the same command line.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const startLimit = time.Minute

func main() {
	config := embed.NewConfig()
	flag.StringVar(&config.Dir, "data-dir", "", "where the data is kept")
	flag.BoolVar(&config.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk: the data is thrown away anyway")
	flag.StringVar(&config.LogLevel, "log-level", "warn", "debug, info, warn or error")
	urlFlag("listen-client-urls", "where clients connect, such as unix:///run/etcd.sock", &config.ListenClientUrls)
	urlFlag("advertise-client-urls", "what clients are told to connect to", &config.AdvertiseClientUrls)
	urlFlag("listen-peer-urls", "where peers would connect: there are none, but etcd wants an address", &config.ListenPeerUrls)
	flag.Parse()

	if err := run(config); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// urlFlag declares a flag that holds one URL, where upstream takes a list.
func urlFlag(name, usage string, target *[]url.URL) {
	flag.Func(name, usage, func(text string) error {
		parsed, err := url.Parse(text)
		if err == nil {
			*target = []url.URL{*parsed}
		}
		return err
	})
}

func run(config *embed.Config) error {
	if config.Dir == "" {
		return fmt.Errorf("--data-dir is required")
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)

	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()

	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(startLimit):
		return fmt.Errorf("not ready after %s", startLimit)
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
