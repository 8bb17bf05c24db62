package journal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/esrp"
)

// uriPrefix is the prefix of the URI of a body, before its hash.
const uriPrefix = esrp.Scheme + "artifacts/sha256/"

// bodies stores the bodies that a record refers to. The caller holds the chain's lock, so that no
// process removes a body before the line that refers to it is written.
type bodies struct {
	c        *Chain
	clean    func(string) string
	allExist bool  // no body has been removed since the last record
	err      error // the first

	// For a record in pendingRecords: the bodies to write with it, in base64, and the hashes of
	// those written with earlier records. Nil if bodies are stored directly.
	pending map[string]string
	stored  map[string]bool
}

// text stores a text, with secrets removed, and returns it as an input or output.
func (b *bodies) text(name, contentType, text string) esrp.Body {
	return b.bytes(name, contentType, []byte(b.clean(text)))
}

// bytes stores content unchanged. Empty content is part of the record itself, because an artifact
// has content (esrp.md 6).
func (b *bodies) bytes(name, contentType string, data []byte) esrp.Body {
	out := esrp.Body{Name: name, ContentType: contentType, Encoding: esrp.UTF8}
	if len(data) == 0 {
		return out
	}
	hash, err := b.put(data)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("cannot store a body: %w", err)
	}
	out.Encoding, out.Data = esrp.Path, uriPrefix+hash
	return out
}

// put stores content and returns its hash.
func (b *bodies) put(data []byte) (hash string, err error) {
	if b.pending == nil {
		return b.c.put(data)
	}
	if hash = esrp.HashBytes(data); !b.stored[hash] {
		b.stored[hash] = true
		b.pending[hash] = base64.StdEncoding.EncodeToString(data)
	}
	return hash, nil
}

// file stores the content of a file and removes secrets from text. It returns the stored content.
func (b *bodies) file(name string, data []byte) (esrp.Body, []byte) {
	if utf8.Valid(data) {
		data = []byte(b.clean(string(data)))
	}
	return b.bytes(name, "application/octet-stream", data), data
}

// has reports whether stored bodies still exist.
func (b *bodies) has(list ...esrp.Body) bool {
	if b.allExist {
		return true
	}
	for _, body := range list {
		if hash, ok := hashOf(body.Data); ok {
			if b.pending != nil {
				if !b.stored[hash] {
					return false
				}
				continue
			}
			if _, err := os.Stat(filepath.Join(b.c.artifacts, hash)); err != nil {
				return false
			}
		}
	}
	return true
}

// put stores a body and returns its hash. An existing complete body is kept.
func (c *Chain) put(data []byte) (string, error) {
	hash := esrp.HashBytes(data)
	path := filepath.Join(c.artifacts, hash)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(data)) {
		return hash, nil
	}
	if err := os.MkdirAll(c.artifacts, 0o700); err != nil {
		return "", err
	}
	// A file named by its hash must be complete, so it is renamed into place.
	temp := filepath.Join(c.dir, "body.tmp") // the lock is held
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(temp, path); err != nil {
		return "", err
	}
	c.unsynced = append(c.unsynced, path)
	c.bytesSinceTrim += int64(len(data))
	return hash, nil
}

// The errors of bodies.
var (
	ErrNoBody  = errors.New("the content no longer exists: its chat was deleted, or the journal became too large or old")
	ErrDamaged = errors.New("the content is damaged")
)

// Body returns the verified content of an input or output. Errors: ErrNoBody, ErrDamaged.
func (c *Chain) Body(b esrp.Body) ([]byte, error) {
	switch b.Encoding {
	case esrp.Base64:
		return base64.StdEncoding.DecodeString(b.Data)
	case esrp.Path:
		hash, ok := hashOf(b.Data)
		if !ok {
			return nil, fmt.Errorf("%q is not a body of the journal", b.Data)
		}
		return c.body(hash)
	}
	return []byte(b.Data), nil
}

func (c *Chain) body(hash string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(c.artifacts, hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoBody
	}
	if err == nil && esrp.HashBytes(data) != hash {
		err = ErrDamaged
	}
	return data, err
}
