package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/localhost"
)

// Options describe the connection to a cluster.
type Options struct {
	URL   string // of one or more servers, separated by commas
	Seed  []byte // of the nkey; empty if the servers require none
	Role  string // RoleController, RoleWorker or RoleViewer; determines the inbox
	CA    string // file with the certificate authorities of the servers; empty uses the system's
	Lease time.Duration
	Log   *slog.Logger
}

// defaultLease is how long a worker or leader may be silent before another one replaces it.
const defaultLease = 30 * time.Second

// Cluster is a connection to the servers.
type Cluster struct {
	conn  *jet.Conn
	key   *jet.Key // may be nil
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
	var err error
	if len(o.Seed) > 0 {
		if c.key, err = jet.ParseKey(o.Seed); err != nil {
			return nil, err
		}
	}
	c.conn, err = jet.Dial(ctx, jet.Options{URL: o.URL, Name: "ecp", Key: c.key, CA: o.CA, Inbox: inboxPrefix(o.Role), Log: o.Log})
	return c, err
}

// Close ends the connection.
func (c *Cluster) Close() { c.conn.Close() }

// runs opens the bucket of runs.
func (c *Cluster) runs(ctx context.Context) (*jet.KV, error) {
	kv, err := c.conn.KV(ctx, runsBucket)
	if errors.Is(err, jet.ErrNotFound) {
		return nil, fmt.Errorf("this NATS server has no runs yet; create one with ecp submit: %w", err)
	}
	return kv, err
}

// get decodes a value of the bucket of runs, and returns its revision.
func (c *Cluster) get(ctx context.Context, key string, into any) (revision uint64, err error) {
	kv, err := c.runs(ctx)
	if err != nil {
		return 0, err
	}
	raw, revision, err := kv.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	return revision, json.Unmarshal(raw, into)
}

// put encodes a value for the bucket of runs.
func (c *Cluster) put(ctx context.Context, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	kv, err := c.runs(ctx)
	if err != nil {
		return err
	}
	return kv.Put(ctx, key, raw)
}

// keys returns the keys of the bucket of runs that match, sorted.
func (c *Cluster) keys(ctx context.Context, pattern string) ([]string, error) {
	kv, err := c.runs(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := kv.Keys(ctx, pattern)
	slices.Sort(keys)
	return keys, err
}

// Settings that streams and buckets share.
const (
	maxWork       = 1_000_000
	maxWorkSize   = 64 << 10
	maxResultSize = 256 << 10
	workAge       = 14 * 24 * time.Hour
	resultAge     = 30 * 24 * time.Hour
)

// layout returns the streams and buckets that all runs share.
func layout() jet.Layout {
	return jet.Layout{
		Streams: []jet.StreamSpec{
			{Name: workStream, Subjects: []string{workSubjects}, WorkQueue: true, OnePerSubject: true, MaxMessages: maxWork, MaxSize: maxWorkSize, MaxAge: workAge},
			{Name: planStream, Subjects: []string{planSubjects}, WorkQueue: true, OnePerSubject: true},
		},
		KV:    []string{runsBucket},
		Blobs: []jet.BlobsSpec{{Name: fixturesBucket}, {Name: blobsBucket, MaxAge: resultAge}},
	}
}

// resultStream returns the stream for the results of a run.
func resultStream(run string) jet.StreamSpec {
	return jet.StreamSpec{Name: resultStreams + run, Subjects: []string{"ecp.res." + run + ".*.*.*"}, OnePerSubject: true, MaxSize: maxResultSize, MaxAge: resultAge, Direct: true}
}

// putBlob stores contents in a bucket and returns their digest.
func (c *Cluster) putBlob(ctx context.Context, raw []byte) (string, error) {
	blobs, err := c.conn.Blobs(ctx, blobsBucket)
	if err != nil {
		return "", err
	}
	return blobs.PutBytes(ctx, raw)
}

// maxBlob limits the size of a blob of a result, in bytes.
const maxBlob = 64 << 20

// readBlob reads a blob of results.
func (c *Cluster) readBlob(ctx context.Context, name string) ([]byte, error) {
	blobs, err := c.conn.Blobs(ctx, blobsBucket)
	if err != nil {
		return nil, err
	}
	return blobs.GetBytes(ctx, name, maxBlob)
}
