package jet

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// KV is a bucket of keys and their values.
type KV struct{ kv jetstream.KeyValue }

// KV opens a bucket. The error is ErrNotFound if it does not exist.
func (c *Conn) KV(ctx context.Context, bucket string) (*KV, error) {
	kv, err := c.js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", bucket, notFound(err))
	}
	return &KV{kv}, nil
}

// Get returns a value and its revision. The error is ErrNotFound if the key has none.
func (b *KV) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	entry, err := b.kv.Get(ctx, key)
	if err != nil {
		return nil, 0, notFound(err)
	}
	return entry.Value(), entry.Revision(), nil
}

// Put sets a value.
func (b *KV) Put(ctx context.Context, key string, value []byte) error {
	_, err := b.kv.Put(ctx, key, value)
	return err
}

// Update sets a value if its revision is still the given one; 0 means that the key has no value.
// Otherwise the error is ErrConflict.
func (b *KV) Update(ctx context.Context, key string, value []byte, revision uint64) (err error) {
	if revision == 0 {
		_, err = b.kv.Create(ctx, key, value)
	} else {
		_, err = b.kv.Update(ctx, key, value, revision)
	}
	if err != nil && (isConflict(err) || errors.Is(err, jetstream.ErrKeyExists)) {
		return errors.Join(ErrConflict, err)
	}
	return err
}

// Delete removes a value.
func (b *KV) Delete(ctx context.Context, key string) error { return b.kv.Delete(ctx, key) }

// Keys returns the keys that match, in any order.
func (b *KV) Keys(ctx context.Context, pattern string) (out []string, err error) {
	keys, err := b.kv.ListKeysFiltered(ctx, pattern)
	if err != nil {
		return nil, err
	}
	for key := range keys.Keys() {
		out = append(out, key)
	}
	return out, nil
}

// Watch calls changed with the values of matching keys, the current ones first, until ctx ends. It
// returns after the current ones; later changes are reported from one goroutine.
func (b *KV) Watch(ctx context.Context, pattern string, changed func(key string, value []byte)) error {
	w, err := b.kv.Watch(ctx, pattern)
	if err != nil {
		return err
	}
	emit := func(entry jetstream.KeyValueEntry) {
		if entry.Operation() == jetstream.KeyValuePut {
			changed(entry.Key(), entry.Value())
		}
	}
	for entry := range w.Updates() {
		if entry == nil {
			break // all current values were read
		}
		emit(entry)
	}
	go func() {
		defer func() { _ = w.Stop() }()
		for {
			select {
			case <-ctx.Done():
				return
			case entry, ok := <-w.Updates():
				if !ok {
					return
				}
				if entry != nil {
					emit(entry)
				}
			}
		}
	}()
	return nil
}
