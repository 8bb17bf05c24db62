package jet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Blobs is a bucket of blobs, each named by its digest.
type Blobs struct {
	c      *Conn
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
	return &Blobs{c, bucket, store, status.TTL()}, nil
}

// Digest returns the name of a blob: the SHA-256 of its contents in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// putTries is how often an upload is tried.
const putTries = 3

// transferTime limits one upload or download. If a context has no deadline, the library gives up
// after five seconds, which is too short for large blobs on a busy machine.
const transferTime = 10 * time.Minute

// Put stores a blob under its digest, unless it is already stored and not older than half of the
// bucket's maximum age.
func (b *Blobs) Put(ctx context.Context, digest string, open func() (io.ReadCloser, error)) error {
	return b.PutFresh(ctx, digest, b.maxAge/2, open)
}

// PutFresh is Put that stores a blob again if it is older than age; 0 means never.
func (b *Blobs) PutFresh(ctx context.Context, digest string, age time.Duration, open func() (io.ReadCloser, error)) error {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	var err error
	for range putTries {
		if info, found := b.store.GetInfo(ctx, digest); found == nil && !info.Deleted && (age == 0 || time.Since(info.ModTime) < age) {
			return nil // even if another process stored it at the same time
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
var errDigest = errors.New("its contents differ from those that were uploaded")

// Get writes a blob to the writer that begin returns, and verifies its digest. A process that
// stores the same blob at the same time may disturb a reader; the reader then starts again, once.
// The error is ErrNotFound if the blob does not exist.
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
	from, err := b.read(ctx, digest)
	if err != nil {
		return err
	}
	defer from.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return err
	case n > limit:
		return fmt.Errorf("it has more than %d MiB", limit>>20)
	case hex.EncodeToString(sum.Sum(nil)) != digest:
		return errDigest
	}
	return nil
}

// beginTime limits how long the servers may take to begin a download: a request to a server that
// stops may never be answered.
const beginTime = 10 * time.Second

// stallTime is how long a reader waits for the next chunk before it checks why none arrives.
const stallTime = time.Second

// perReadDeadline is a context whose deadline is always in the future, since the library applies the
// deadline of a context to each read.
type perReadDeadline struct{ context.Context }

// Deadline implements context.Context.
func (perReadDeadline) Deadline() (time.Time, bool) { return time.Now().Add(stallTime), true }

// chunkReader reads a blob chunk by chunk.
type chunkReader struct {
	object jetstream.ObjectResult
	ctx    context.Context
	cancel context.CancelFunc
	b      *Blobs
}

// read starts to read a blob.
func (b *Blobs) read(ctx context.Context, digest string) (*chunkReader, error) {
	if _, err := b.store.GetInfo(ctx, digest); err != nil { // with a short time limit
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	late := time.AfterFunc(beginTime, cancel)
	object, err := b.store.Get(perReadDeadline{ctx}, digest)
	if !late.Stop() {
		if err == nil {
			_ = object.Close()
		}
		return nil, fmt.Errorf("no answer within %s: %w", beginTime, nats.ErrTimeout)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &chunkReader{object, ctx, cancel, b}, nil
}

// errReplaced means that a blob was stored again or removed while it was read.
var errReplaced = errors.New("it was replaced or removed while it was read")

// Read implements io.Reader. Chunks that were replaced or removed never arrive.
func (p *chunkReader) Read(buf []byte) (int, error) {
	n, err := p.object.Read(buf)
	if n > 0 || err != nil || len(buf) == 0 {
		return n, err
	}
	begun, err := p.object.Info()
	if err != nil {
		return 0, err
	}
	now, err := p.b.store.GetInfo(p.ctx, begun.Name)
	if errors.Is(err, jetstream.ErrObjectNotFound) || err == nil && now.NUID != begun.NUID {
		return 0, errReplaced
	}
	return 0, err
}

// Close implements io.Closer.
func (p *chunkReader) Close() error {
	p.cancel()
	return p.object.Close()
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

// Size returns the size of a blob in bytes. The error is ErrNotFound if it does not exist, or
// another error if the size of its contents is unknown or they do not match their name.
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

// Open returns a reader of a blob, which loads chunks from the position set by Seek. Reading to the
// end fails if the contents do not match the digest. Errors are those of Size.
func (b *Blobs) Open(ctx context.Context, digest string) (io.ReadSeekCloser, error) {
	size, err := b.Size(ctx, digest)
	if err != nil {
		return nil, err
	}
	return &blobReader{ctx: ctx, b: b, digest: digest, size: size}, nil
}

// blobReader opens the blob at the first read after a change of position.
type blobReader struct {
	ctx       context.Context
	b         *Blobs
	digest    string
	size, off int64
	from      *chunkReader // nil until the next read
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
		return 0, errors.New("negative position")
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
		from, err := r.b.read(r.ctx, r.digest)
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

// BlobInfo describes a blob in a list.
type BlobInfo struct {
	Digest string
	Size   int64
}

// List returns all blobs, in any order.
func (b *Blobs) List(ctx context.Context) (out []BlobInfo, err error) {
	list, err := b.store.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", b.name, err)
	}
	for _, info := range list {
		out = append(out, BlobInfo{info.Name, int64(info.Size)}) //nolint:gosec // less than a disk
	}
	return out, nil
}

// Delete removes a blob.
func (b *Blobs) Delete(ctx context.Context, digest string) error {
	return notFound(b.store.Delete(ctx, digest))
}

// DeleteOlder removes a blob if it was stored before the given time, and reports whether it did. A
// blob that another process stores again at the same time is kept.
func (b *Blobs) DeleteOlder(ctx context.Context, digest string, before time.Time) (removed bool, err error) {
	stream, err := b.c.Stream(ctx, "OBJ_"+b.name)
	if err != nil {
		return false, err
	}
	subject := "$O." + b.name + ".M." + base64.URLEncoding.EncodeToString([]byte(digest))
	m, err := stream.Last(ctx, subject)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	var info jetstream.ObjectInfo
	if err == nil {
		err = json.Unmarshal(m.Data, &info)
	}
	if err != nil || info.Deleted || !m.Time.Before(before) {
		return false, err
	}
	// The library's deletion would also remove chunks that were stored since.
	chunks := "$O." + b.name + ".C." + info.NUID
	info.Deleted, info.Size, info.Chunks, info.Digest = true, 0, 0, ""
	if m.Data, err = json.Marshal(info); err != nil {
		return false, err
	}
	m.Header = map[string]string{jetstream.MsgRollup: jetstream.MsgRollupSubject}
	if _, err = stream.Append(ctx, m, m.Seq, subject); errors.Is(err, ErrConflict) {
		return false, nil
	}
	if err == nil {
		err = stream.Purge(ctx, chunks)
	}
	return err == nil, err
}
