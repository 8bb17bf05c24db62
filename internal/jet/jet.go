// Package jet is the only package that uses NATS JetStream: connections, streams whose messages
// are appended in a checked order, consumers of work, key-value buckets, and contents named by
// their digests. The embedded server is in the package embed below, so that a client links none.
//
// Guarantees: an append either follows the message that the caller names, or is refused with
// ErrConflict; an append whose answer is lost is stored once. Contents are stored under their
// SHA-256, and readers get those contents or an error. Appends and setups go on while servers restart
// or choose a leader, until their contexts end.
//
// It knows nothing of jobs and evaluations. Entry points: Dial, Conn.Setup, Conn.Stream,
// Conn.Consumer, Conn.KV, Conn.Blobs.
package jet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options describe a connection.
type Options struct {
	URL   string // of one or more servers, separated by commas
	Name  string // of the client, in the servers' lists
	Token string // empty for none, or if the URL has credentials
	Key   *Key   // nkey; nil for none
	CA    string // file with certificates to check the servers' against; empty means the system's
	Inbox string // begins the subjects on which answers arrive; empty means the usual ones
	// Wait makes Dial wait for the first connection until its context ends. Otherwise a server that
	// cannot be reached is an error at once.
	Wait bool
	// Server is a server in this process, used instead of URL.
	Server interface{ InProcessConn() (net.Conn, error) }
	Log    *slog.Logger
}

// Conn is a connection to the servers, which reconnects whenever it is lost.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger
}

const (
	reconnectWait  = 500 * time.Millisecond
	connectTimeout = 30 * time.Second // of a server in this process, on a busy machine
)

// Dial connects. A server that refuses the credentials is an error; see IsRefused.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	connected, refused := make(chan struct{}, 1), make(chan error, 1)
	said := "" // each reason is logged once, since a client tries twice a second; callbacks are sequential
	opts := []nats.Option{
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(o.Wait), nats.ReconnectWait(reconnectWait),
		nats.IgnoreAuthErrorAbort(), // after the first connection: the configuration of NATS may be corrected
		nats.ConnectHandler(func(*nats.Conn) { connected <- struct{}{} }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			said = ""
			o.Log.Info("NATS is connected again", "url", nc.ConnectedUrlRedacted())
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if IsRefused(err) {
				select {
				case refused <- err:
				default:
				}
			}
			if err != nil && err.Error() != said {
				said = err.Error()
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
		opts = append(opts, nats.RootCAs(o.CA))
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

// IsRefused reports whether a server refused the credentials.
func IsRefused(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired}, func(is error) bool { return errors.Is(err, is) })
}

// Close ends the connection.
func (c *Conn) Close() { c.nc.Close() }

// URL is the server that the connection is to, without credentials.
func (c *Conn) URL() string { return c.nc.ConnectedUrlRedacted() }

// Flush waits until the servers have everything that was sent.
func (c *Conn) Flush(ctx context.Context) error { return c.nc.FlushWithContext(ctx) }

// Notify sends an empty message to those that listen to a subject now.
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
