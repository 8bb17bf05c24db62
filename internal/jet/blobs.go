package jet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Blobs is a bucket of contents, each named by its digest.
type Blobs struct {
	name   string
	store  jetstream.ObjectStore
	maxAge time.Duration
}

// Blobs opens a bucket. The error is ErrNotFound if it does not exist.
func (c *Conn) Blobs(ctx context.Context, bucket string) (*Blobs, error) {
	store, err := c.js.ObjectStore(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", bucket, notFound(err))
	}
	status, err := store.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", bucket, err)
	}
	return &Blobs{bucket, store, status.TTL()}, nil
}

// Digest is the name of contents: their SHA-256 in hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// putTries is how many times an upload is tried.
const putTries = 3

// Put stores contents under their digest, unless they are stored already and stay for a while:
// those older than half of the bucket's age are stored again.
func (b *Blobs) Put(ctx context.Context, digest string, open func() (io.ReadCloser, error)) error {
	var err error
	for range putTries {
		if info, found := b.store.GetInfo(ctx, digest); found == nil && !info.Deleted && (b.maxAge == 0 || time.Since(info.ModTime) < b.maxAge/2) {
			return nil // also if another process stored them at the same time
		}
		var content io.ReadCloser
		if content, err = open(); err != nil {
			return err
		}
		_, err = b.store.Put(ctx, jetstream.ObjectMeta{Name: digest}, content)
		if closed := content.Close(); err == nil {
			return closed
		}
	}
	return fmt.Errorf("upload %s to %s: %w", digest, b.name, err)
}

// PutBytes is Put for contents in memory. It returns their digest.
func (b *Blobs) PutBytes(ctx context.Context, data []byte) (digest string, err error) {
	digest = Digest(data)
	return digest, b.Put(ctx, digest, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

// errDigest means that contents do not match the digest in their name.
var errDigest = errors.New("its contents are not those that were uploaded")

// Get writes contents to what begin returns, and checks them against the digest in their name. Two
// processes that store the same contents at the same time may disturb a reader; it begins again,
// once. The error is ErrNotFound if they do not exist.
func (b *Blobs) Get(ctx context.Context, digest string, limit int64, begin func() (io.Writer, error)) error {
	var err error
	for range 2 {
		var w io.Writer
		if w, err = begin(); err != nil {
			return err
		}
		if err = b.getOnce(ctx, digest, limit, w); err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("download %s from %s: %w", digest, b.name, notFound(err))
	}
	return nil
}

func (b *Blobs) getOnce(ctx context.Context, digest string, limit int64, w io.Writer) error {
	object, err := b.store.Get(ctx, digest)
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
	case hex.EncodeToString(sum.Sum(nil)) != digest:
		return errDigest
	}
	return object.Error()
}

// GetBytes is Get into memory.
func (b *Blobs) GetBytes(ctx context.Context, digest string, limit int64) ([]byte, error) {
	var out bytes.Buffer
	err := b.Get(ctx, digest, limit, func() (io.Writer, error) {
		out.Reset()
		return &out, nil
	})
	return out.Bytes(), err
}

// Size is how many bytes contents have. The error is ErrNotFound if they do not exist, and another
// one if they do not match their name.
func (b *Blobs) Size(ctx context.Context, digest string) (int64, error) {
	info, err := b.store.GetInfo(ctx, digest)
	if err != nil {
		return 0, notFound(err)
	}
	sum, err := jetstream.DecodeObjectDigest(info.Digest)
	if err != nil {
		return 0, err
	}
	if hex.EncodeToString(sum) != digest {
		return 0, errDigest
	}
	return int64(info.Size), nil //nolint:gosec // less than a disk
}

// Open returns a reader of contents, which reads them in pieces from where Seek says. Reading to
// the end fails if they do not match their name. Errors are those of Size.
func (b *Blobs) Open(ctx context.Context, digest string) (io.ReadSeekCloser, error) {
	size, err := b.Size(ctx, digest)
	if err != nil {
		return nil, err
	}
	return &blobReader{ctx: ctx, b: b, digest: digest, size: size}, nil
}

// blobReader opens the contents with the first read after a change of place.
type blobReader struct {
	ctx       context.Context
	b         *Blobs
	digest    string
	size, off int64
	from      io.ReadCloser // nil until the next read
}

// Seek implements io.Seeker.
func (r *blobReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.off
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("a negative place")
	}
	if offset != r.off {
		r.off = offset
		return offset, r.Close()
	}
	return offset, nil
}

// Read implements io.Reader.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.from == nil {
		from, err := r.b.store.Get(r.ctx, r.digest)
		if err != nil {
			return 0, notFound(err)
		}
		r.from = from
		if _, err := io.CopyN(io.Discard, from, r.off); err != nil {
			return 0, err
		}
	}
	n, err := r.from.Read(p)
	r.off += int64(n)
	return n, err
}

// Close implements io.Closer.
func (r *blobReader) Close() error {
	if r.from == nil {
		return nil
	}
	from := r.from
	r.from = nil
	return from.Close()
}

// BlobInfo describes contents in a list.
type BlobInfo struct {
	Digest string
	Size   int64
	Stored time.Time
}

// List returns all contents, in any order.
func (b *Blobs) List(ctx context.Context) (out []BlobInfo, err error) {
	list, err := b.store.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", b.name, err)
	}
	for _, info := range list {
		out = append(out, BlobInfo{info.Name, int64(info.Size), info.ModTime}) //nolint:gosec // less than a disk
	}
	return out, nil
}

// Delete removes contents.
func (b *Blobs) Delete(ctx context.Context, digest string) error {
	return notFound(b.store.Delete(ctx, digest))
}
