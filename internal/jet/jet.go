// Package jet is the only package that uses NATS JetStream: connections, streams with conditional
// appends, work queue consumers, key-value buckets, and blobs named by their digests. The embedded
// server is in package embed below it, so that clients do not link it.
//
// An append either follows the message that the caller names, or fails with ErrConflict; an append
// whose answer is lost is stored once. Blobs are stored under their SHA-256, and readers get
// exactly these contents or an error. Appends and setups continue while servers restart or elect a
// leader, until their contexts end.
//
// The package does not know about jobs or evaluations. Entry points: Dial, Conn.Setup, Conn.Stream,
// Conn.Consumer, Conn.KV, Conn.Blobs.
package jet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Options describe a connection.
type Options struct {
	URL   string // of one or more servers, separated by commas
	Name  string // of the client, in the servers' lists of connections
	Token string // empty for none, or if the URL has credentials
	Key   *Key   // nkey; nil for none
	CA    string // file with the authorities to verify servers with; empty means the system's
	Inbox string // prefix of reply subjects; empty means the default
	// Wait makes Dial wait for the first connection until its context ends. Otherwise it fails
	// immediately if no server can be reached.
	Wait bool
	// Server is a server in this process, used instead of URL.
	Server interface{ InProcessConn() (net.Conn, error) }
	Log    *slog.Logger
}

// Conn is a connection to the servers, which reconnects when it is lost.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger
}

const (
	reconnectWait  = 500 * time.Millisecond
	connectTimeout = 30 * time.Second // of a server in this process, on a busy machine
)

// Dial connects. It fails if a server rejects the credentials; see IsRefused.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	connected, refused := make(chan struct{}, 1), make(chan error, 1)
	lastReason := "" // each reason is logged once, since a client tries twice a second; callbacks are sequential
	opts := []nats.Option{
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(o.Wait), nats.ReconnectWait(reconnectWait),
		nats.IgnoreAuthErrorAbort(), // after the first connection: the configuration of NATS may be corrected
		nats.ConnectHandler(func(*nats.Conn) { connected <- struct{}{} }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			lastReason = ""
			o.Log.Info("NATS is connected again", "url", nc.ConnectedUrlRedacted())
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if IsRefused(err) {
				select {
				case refused <- err:
				default:
				}
			}
			if err != nil && err.Error() != lastReason {
				lastReason = err.Error()
				o.Log.Warn("cannot reach NATS; trying again", "err", err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("the connection to NATS is lost; trying again", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("NATS", "err", err) }),
	}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.Key != nil {
		opts = append(opts, nats.Nkey(o.Key.Public(), o.Key.pair.Sign))
	}
	if o.CA != "" {
		authorities, err := readAuthorities(ctx, o.CA)
		if err != nil {
			return nil, err
		}
		opts = append(opts, authorities)
	}
	if o.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.Inbox))
	}
	if o.Server != nil {
		opts = append(opts, nats.InProcessServer(o.Server), nats.Timeout(connectTimeout))
	}
	nc, err := nats.Connect(o.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if !nc.IsConnected() {
		select {
		case <-connected:
		case err = <-refused:
		case <-ctx.Done():
			err = errors.Join(ctx.Err(), nc.LastError())
		}
	}
	c := &Conn{nc: nc, log: o.Log}
	if err == nil {
		c.js, err = jetstream.New(nc)
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return c, nil
}

// maxAuthorities bounds the file of Options.CA, in bytes.
const maxAuthorities = 16 << 20

// readAuthorities returns the option for the authorities in a file, which may be a stream (see
// safeio.ReadInput).
func readAuthorities(ctx context.Context, path string) (nats.Option, error) {
	text, err := safeio.ReadInput(ctx, path, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("the certificates of NATS: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates in PEM format", path)
	}
	return nats.ClientTLSConfig(nil, func() (*x509.CertPool, error) { return pool, nil }), nil
}

// IsRefused reports whether a server rejected the credentials.
func IsRefused(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// Close closes the connection.
func (c *Conn) Close() { c.nc.Close() }

// URL returns the URL of the connected server, without credentials.
func (c *Conn) URL() string { return c.nc.ConnectedUrlRedacted() }

// Flush waits until the servers have received everything that was sent.
func (c *Conn) Flush(ctx context.Context) error { return c.nc.FlushWithContext(ctx) }

// Notify sends an empty message to the current listeners of a subject.
func (c *Conn) Notify(subject string) error { return c.nc.Publish(subject, nil) }

// Listen calls notified for each message of Notify, until stop is called.
func (c *Conn) Listen(subject string, notified func()) (stop func(), err error) {
	sub, err := c.nc.Subscribe(subject, func(*nats.Msg) { notified() })
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
