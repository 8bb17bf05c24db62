package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nats-io/nats.go/jetstream"
)

// maxBlob bounds a result's blob, in bytes.
const maxBlob = 64 << 20

// putTries is how many times an upload is tried.
const putTries = 3

// putFile stores a file under its digest, unless it is stored already.
func (c *Cluster) putFile(ctx context.Context, bucket, path, name string) error {
	return c.put(ctx, bucket, name, func() (io.ReadCloser, error) { return os.Open(path) })
}

// put stores contents under their digest, unless they are stored already.
func (c *Cluster) put(ctx context.Context, bucket, name string, open func() (io.ReadCloser, error)) error {
	store, err := c.js.ObjectStore(ctx, bucket)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", bucket, err)
	}
	for range putTries {
		if info, found := store.GetInfo(ctx, name); found == nil && !info.Deleted {
			return nil // also if another process stored them at the same time
		}
		var content io.ReadCloser
		if content, err = open(); err != nil {
			return err
		}
		_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name}, content)
		if closed := content.Close(); err == nil {
			return closed
		}
	}
	return fmt.Errorf("upload %s to %s: %w", name, bucket, err)
}

// get writes contents to w, and checks them against the digest in their name. Two processes that
// store the same contents at the same time may disturb a reader once.
func (c *Cluster) get(ctx context.Context, bucket, name string, limit int64, begin func() (io.Writer, error)) error {
	store, err := c.js.ObjectStore(ctx, bucket)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", bucket, err)
	}
	for range 2 {
		var w io.Writer
		if w, err = begin(); err != nil {
			return err
		}
		if err = getOnce(ctx, store, name, limit, w); err == nil {
			return nil
		}
	}
	return fmt.Errorf("download %s of %s: %w", name, bucket, err)
}

// errDigest says that contents do not match the digest in their name.
var errDigest = errors.New("its contents are not those that were uploaded")

func getOnce(ctx context.Context, store jetstream.ObjectStore, name string, limit int64, w io.Writer) error {
	object, err := store.Get(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(object, limit+1))
	switch {
	case err != nil:
		return err
	case n > limit:
		return fmt.Errorf("it has more than %d MiB", limit>>20)
	case hex.EncodeToString(sum.Sum(nil)) != name:
		return errDigest
	}
	return object.Error()
}
