package jet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamSpec describes a stream.
type StreamSpec struct {
	Name          string
	Subjects      []string
	WorkQueue     bool // messages are removed when they are acknowledged
	OnePerSubject bool // a second message of a subject is refused
	Direct        bool // every replica answers reads, even an outdated one
	MaxMessages   int64
	MaxSize       int32 // of a message, in bytes
	MaxAge        time.Duration
}

func (s StreamSpec) config(replicas int) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name: s.Name, Subjects: s.Subjects, AllowDirect: s.Direct, MaxMsgs: s.MaxMessages, MaxMsgSize: s.MaxSize, MaxAge: s.MaxAge,
		Storage: jetstream.FileStorage, Replicas: replicas,
	}
	if s.WorkQueue {
		cfg.Retention = jetstream.WorkQueuePolicy
	}
	if s.OnePerSubject {
		cfg.MaxMsgsPerSubject, cfg.Discard, cfg.DiscardNewPerSubject = 1, jetstream.DiscardNew, true
	}
	return cfg
}

// BlobsSpec describes a bucket of contents.
type BlobsSpec struct {
	Name   string
	MaxAge time.Duration // 0 means forever
}

// Layout describes the objects that an application needs on the servers.
type Layout struct {
	Streams []StreamSpec
	KV      []string
	Blobs   []BlobsSpec
}

// manyReplicas is the number of replicas if there are enough servers: with three, one may fail.
const manyReplicas = 3

// Limits of Setup. A cluster that is starting reports too few servers.
const (
	setupTime     = 2 * time.Minute
	setupTry      = 5 * time.Second
	triesWithMany = 3
)

// Setup creates the missing objects of a layout with the given number of replicas, and returns that
// number. If it is 0, there are three replicas if there are enough servers, otherwise one, and
// existing streams with fewer get as many.
func (c *Conn) Setup(ctx context.Context, l Layout, replicas int) (used int, err error) {
	used = replicas
	if replicas <= 0 {
		used = manyReplicas
	}
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, setupTry)
		err := c.setupWith(limited, l, used, replicas <= 0)
		cancel()
		code := errorCode(err)
		tooMany := code == noSuitableServers || code == noResources
		switch {
		case err == nil:
			return used, nil
		case replicas <= 0 && used > 1 && (code == notClustered || tooMany && try > triesWithMany):
			if tooMany {
				c.log.Warn("NATS has too few servers to keep everything on three", "err", err)
			}
			used = 1
			continue
		case !IsOutage(err) && !tooMany || ctx.Err() != nil:
			return 0, err
		}
		Pause(ctx, time.Second)
	}
}

func (c *Conn) setupWith(ctx context.Context, l Layout, replicas int, grow bool) error {
	for _, s := range l.Streams {
		existing, err := c.js.Stream(ctx, s.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			_, err = c.js.CreateStream(ctx, s.config(replicas))
		case err == nil && grow && existing.CachedInfo().Config.Replicas < replicas:
			cfg := existing.CachedInfo().Config
			cfg.Replicas = replicas
			_, err = c.js.UpdateStream(ctx, cfg)
		}
		if err != nil {
			return fmt.Errorf("make the stream %s: %w", s.Name, err)
		}
	}
	for _, name := range l.KV {
		_, err := c.js.KeyValue(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			_, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Replicas: replicas})
		}
		if err != nil {
			return fmt.Errorf("make the bucket %s: %w", name, err)
		}
	}
	for _, b := range l.Blobs {
		_, err := c.js.ObjectStore(ctx, b.Name)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			_, err = c.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: b.Name, TTL: b.MaxAge, Replicas: replicas})
		}
		if err != nil {
			return fmt.Errorf("make the bucket %s: %w", b.Name, err)
		}
	}
	return nil
}
