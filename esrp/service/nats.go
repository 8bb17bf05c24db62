package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// maxMessage is the maximum size of a message in the embedded NATS, in bytes.
const maxMessage = 8 << 20

// patience is how long the embedded NATS may take to start on a busy machine.
const patience = 30 * time.Second

// embed starts a NATS server in this process and connects to it.
func embed(o Options) (*server.Server, *nats.Conn, error) {
	opts := &server.Options{
		ServerName: "esrp", JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"),
		Authorization: o.Token, MaxPayload: maxMessage,
		DontListen: o.NATSListen == "", NoSigs: true, NoLog: true,
	}
	if o.NATSListen != "" {
		host, port, err := net.SplitHostPort(o.NATSListen)
		if err != nil {
			return nil, nil, err
		}
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, nil, fmt.Errorf("port %q is not a number", port)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
		if opts.Host = host; host == "" {
			opts.Host = "127.0.0.1"
		}
		// For an address in use, NATS would report nothing and retry for half a minute.
		probe, err := net.Listen("tcp", net.JoinHostPort(opts.Host, port))
		if err != nil {
			return nil, nil, fmt.Errorf("embedded NATS: %w", err)
		}
		_ = probe.Close()
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded NATS: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		s.Shutdown()
		return nil, nil, fmt.Errorf("embedded NATS does not start; can it listen at %q?", o.NATSListen)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Token(o.Token), nats.Timeout(patience))
	if err != nil {
		s.Shutdown()
		return nil, nil, fmt.Errorf("embedded NATS: %w", err)
	}
	return s, nc, nil
}

// Dial connects to NATS, and reconnects whenever the connection is lost. It waits for the first
// connection until ctx ends, and logs the reason; a NATS that refuses the credentials is an error.
// It sends a token, unless the token is empty or the URL contains credentials.
func Dial(ctx context.Context, url, token string, log *slog.Logger) (*nats.Conn, error) {
	connected, refused := make(chan struct{}, 1), make(chan error, 1)
	said := "" // logs each reason once, since Dial tries twice a second; callbacks are sequential
	opts := []nats.Option{
		nats.Name("esrp"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(500 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // after the first connection: the configuration of NATS may be corrected
		nats.ConnectHandler(func(*nats.Conn) { connected <- struct{}{} }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			said = ""
			log.Info("NATS is there again", "url", nc.ConnectedUrlRedacted())
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if refuses(err) {
				select {
				case refused <- err:
				default:
				}
			}
			if err != nil && err.Error() != said {
				said = err.Error()
				log.Warn("cannot reach NATS; trying again", "err", err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is lost; trying to reach it again", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "err", err) }),
	}
	if token != "" {
		opts = append(opts, nats.Token(token))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if nc.IsConnected() {
		return nc, nil
	}
	select {
	case <-connected:
		return nc, nil
	case err := <-refused:
		nc.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	case <-ctx.Done():
		err := nc.LastError()
		nc.Close()
		return nil, errors.Join(fmt.Errorf("connect to NATS: %w", ctx.Err()), err)
	}
}

// refuses reports whether an error means that the credentials are wrong.
func refuses(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired}, func(is error) bool { return errors.Is(err, is) })
}
