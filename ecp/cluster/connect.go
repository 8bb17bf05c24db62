package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/seed-dec29ce4/eca/internal/localhost"
)

// Options describe the connection to a cluster.
type Options struct {
	URL   string // of one or more servers, separated by commas
	Seed  []byte // of the nkey; empty if the servers require none
	Role  string // RoleController, RoleWorker or RoleViewer: decides which inbox is used
	CA    string // file with certificates to check the servers' against; empty is the system's
	Lease time.Duration
	Log   *slog.Logger
}

// defaultLease is how long a worker or leader may be silent before another one replaces it.
const defaultLease = 30 * time.Second

// Cluster is a connection to the servers.
type Cluster struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	key   nkeys.KeyPair // may be nil
	lease time.Duration
	log   *slog.Logger
}

// Dial connects, and reconnects whenever the connection is lost. Servers on other machines require
// TLS, because prompts and the commands of agents are confidential.
func Dial(ctx context.Context, o Options) (*Cluster, error) {
	for address := range strings.SplitSeq(o.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("--nats %q is not the URL of a NATS server, such as tls://HOST:4222", address)
		}
		if u.Scheme != "tls" && !localhost.Is(u.Hostname()) {
			return nil, fmt.Errorf("--nats %s: a server on another machine needs tls://", u.Redacted())
		}
	}
	c := &Cluster{lease: o.Lease, log: o.Log}
	if c.lease == 0 {
		c.lease = defaultLease
	}
	opts := []nats.Option{
		nats.Name("ecp"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.CustomInboxPrefix(inboxPrefix(o.Role)),
		nats.IgnoreAuthErrorAbort(), // of a connection that worked before
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("NATS", "err", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("NATS is lost; trying to reach it again", "err", err)
			}
		}),
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if len(o.Seed) > 0 {
		var err error
		if c.key, err = nkeys.FromSeed(o.Seed); err != nil {
			return nil, fmt.Errorf("the nkey cannot be read: %w", err)
		}
		public, err := c.key.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("the nkey cannot be read: %w", err)
		}
		opts = append(opts, nats.Nkey(public, c.key.Sign))
	}
	var err error
	if c.nc, err = nats.Connect(o.URL, opts...); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if err := ctx.Err(); err != nil {
		c.nc.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection.
func (c *Cluster) Close() { c.nc.Close() }

// outageTime bounds how long an operation is tried again while servers come and go.
const outageTime = time.Minute

// throughOutages runs an operation until it succeeds, for up to outageTime: while servers restart or
// choose a leader, they answer late, not at all, or that they are not ready. what names the
// operation in the log.
func (c *Cluster) throughOutages(ctx context.Context, what string, op func() error) error {
	for begin := time.Now(); ; pause(ctx, time.Second) {
		err := op()
		if err == nil || ctx.Err() != nil || time.Since(begin) > outageTime || !isOutage(err) {
			return err
		}
		c.log.Info("cluster: trying again", "what", what, "err", err)
	}
}

// isOutage reports whether an error is one of servers that restart or choose a leader.
func isOutage(err error) bool {
	for _, one := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, jetstream.ErrNoStreamResponse} {
		if errors.Is(err, one) {
			return true
		}
	}
	code := errorCode(err)
	return code == noSuitableServers || code == notAvailable
}

// Codes of JetStream's API that the library does not name.
const (
	noSuitableServers jetstream.ErrorCode = 10005 // for as many replicas as requested
	notAvailable      jetstream.ErrorCode = 10008 // no leader is chosen yet
	notClustered      jetstream.ErrorCode = 10074 // a server without others cannot have replicas
	storeFailed       jetstream.ErrorCode = 10077 // of several errors; the text says which
)

// runs opens the bucket of runs.
func (c *Cluster) runs(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := c.js.KeyValue(ctx, runsBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, errors.New("there are no runs at this NATS: ecp submit makes the first one")
	}
	if err != nil {
		return nil, fmt.Errorf("open the bucket of runs: %w", err)
	}
	return kv, nil
}

// Settings that streams and buckets share.
const (
	maxWork       = 1_000_000
	maxWorkSize   = 64 << 10
	maxResultSize = 256 << 10
	workAge       = 14 * 24 * time.Hour
	resultAge     = 30 * 24 * time.Hour
)

// setup makes the missing streams and buckets. They get three replicas if there are three servers,
// unless replicas says how many.
func (c *Cluster) setup(ctx context.Context, replicas int) (used int, err error) {
	if replicas > 0 {
		return replicas, c.setupWith(ctx, replicas)
	}
	if stream, err := c.js.Stream(ctx, workStream); err == nil {
		replicas = stream.CachedInfo().Config.Replicas
		return replicas, c.setupWith(ctx, replicas)
	}
	err = c.setupWith(ctx, 3)
	if tooFewServers(err) {
		return 1, c.setupWith(ctx, 1)
	}
	return 3, err
}

// tooFewServers reports whether a stream cannot have as many replicas as requested.
func tooFewServers(err error) bool {
	code := errorCode(err)
	return code == noSuitableServers || code == notClustered
}

func (c *Cluster) setupWith(ctx context.Context, replicas int) error {
	for _, s := range []jetstream.StreamConfig{
		{
			Name: workStream, Subjects: []string{workSubjects}, Retention: jetstream.WorkQueuePolicy, MaxMsgs: maxWork, MaxMsgSize: maxWorkSize, MaxAge: workAge,
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, Replicas: replicas,
		},
		{Name: planStream, Subjects: []string{planSubjects}, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, Replicas: replicas},
	} {
		if _, err := c.js.Stream(ctx, s.Name); err == nil {
			continue
		}
		if _, err := c.js.CreateStream(ctx, s); err != nil {
			return fmt.Errorf("create the stream %s: %w", s.Name, err)
		}
	}
	if _, err := c.js.KeyValue(ctx, runsBucket); err != nil {
		if _, err := c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: runsBucket, Replicas: replicas}); err != nil {
			return fmt.Errorf("create the bucket %s: %w", runsBucket, err)
		}
	}
	for _, o := range []jetstream.ObjectStoreConfig{{Bucket: fixturesBucket, Replicas: replicas}, {Bucket: blobsBucket, Replicas: replicas, TTL: resultAge}} {
		if _, err := c.js.ObjectStore(ctx, o.Bucket); err == nil {
			continue
		}
		if _, err := c.js.CreateObjectStore(ctx, o); err != nil {
			return fmt.Errorf("create the bucket %s: %w", o.Bucket, err)
		}
	}
	return nil
}

// resultsOf is the stream with a run's results.
func resultsOf(run string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: resultStreams + run, Subjects: []string{"ecp.res." + run + ".*.*.*"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgSize: maxResultSize, MaxAge: resultAge, AllowDirect: true, Replicas: replicas,
	}
}

// digest is the name of contents.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// errorCode is the code of JetStream's API, 0 for other errors.
func errorCode(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	var older *nats.APIError // of the interface that watchers and object stores still use
	if errors.As(err, &older) {
		return jetstream.ErrorCode(older.ErrorCode)
	}
	return 0
}

// taken reports whether a message was refused because its subject has one already.
func taken(err error) bool {
	switch errorCode(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return true
	case storeFailed:
		return strings.Contains(err.Error(), "per subject")
	}
	return false
}
