package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

const (
	maxAge       = 24 * time.Hour
	fetchTimeout = 5 * time.Second // eca-features.md 6.1
)

// Refresh reads the cached file. With fetch, it first replaces the file if it is older than a day.
// If that fails, the old file is still used. The error is only for information.
func (c *Catalog) Refresh(ctx context.Context, fetch bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, err := c.load()
	if fresh || !fetch || c.opts.URL == "" {
		return err
	}
	return errors.Join(err, c.fetch(ctx))
}

// load reads the cached file if it has changed since it was last read. fresh means that the file
// is less than a day old.
func (c *Catalog) load() (fresh bool, err error) {
	info, err := os.Stat(c.opts.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if at := info.ModTime(); !at.Equal(c.fileTime) {
		data, err := safeio.Read(c.opts.Path, maxBytes)
		if err != nil {
			return false, err
		}
		idx, err := parse(data, FromModelsDev)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.opts.Path, err)
		}
		c.file.Store(idx)
		c.fileTime = at
	}
	age := c.opts.Now().Sub(c.fileTime)
	return age >= 0 && age < maxAge, nil
}

// fetch fetches the current catalogue, stores it in the file, and uses it.
func (c *Catalog) fetch(ctx context.Context) error {
	data, err := c.get(ctx)
	if err != nil {
		return fmt.Errorf("cannot fetch %s: %w", c.opts.URL, err)
	}
	idx, err := parse(data, FromModelsDev)
	if err == nil && idx.size == 0 { // for example from a network with a login page
		err = errors.New("it has no models")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.opts.URL, err)
	}
	c.file.Store(idx)
	if err := os.MkdirAll(filepath.Dir(c.opts.Path), 0o700); err != nil {
		return err
	}
	if err := safeio.Write(c.opts.Path, data, 0o600); err != nil { // atomic, because other processes read the file
		return err
	}
	if info, err := os.Stat(c.opts.Path); err == nil {
		c.fileTime = info.ModTime()
	}
	return nil
}

func (c *Catalog) get(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.opts.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "eca")
	resp, err := c.opts.Client.Do(req)
	if err != nil {
		var at *url.Error // repeats the URL
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(io.LimitReader(resp.Body, maxBytes+1))
	return body.Bytes(), err
}
