package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/internal/filelock"
)

// renewBefore is how long before its expiry a token is renewed (eca-features.md 5.2).
const renewBefore = 60 * time.Second

// renewTimeout is the time limit of a renewal, including the wait for another process that renews.
const renewTimeout = 90 * time.Second

// ErrEnded means that a login has ended: the user has to log in again.
var ErrEnded = errors.New("the login has expired")

// ErrNone means that the user is not logged in.
var ErrNone = errors.New("not logged in")

// renewal is a renewal that is running, and then its outcome. All callers of Token share it.
type renewal struct {
	done chan struct{}
	cred Credential
	err  error
}

// Renewer requests new tokens from the server. An error that wraps ErrEnded means that the server
// no longer accepts the login.
type Renewer func(ctx context.Context, old Credential) (Credential, error)

// Token returns a provider's credential of kind OAuth that stays valid for a while after now. It renews
// the tokens if necessary. rejected is an access token that the provider rejected, or empty: if it is
// the stored one, it is renewed even if it has not expired.
//
// A refresh token can often be used only once. Therefore, only one process renews at a time, after it
// has checked whether another process already has. Callers in one process share a renewal. A renewal
// continues even if all its callers have gone. If the server no longer accepts the login, Token stores
// this, and the error wraps ErrEnded. ErrNone means that there is no such login.
func (s *Store) Token(ctx context.Context, provider, rejected string, now func() time.Time, renew Renewer) (Credential, error) {
	c, fresh, err := s.current(provider, rejected, now())
	if err != nil || fresh {
		return c, err
	}
	s.mu.Lock()
	r, ok := s.renewing[provider]
	if !ok {
		r = &renewal{done: make(chan struct{})}
		s.renewing[provider] = r
		s.renewals.Go(func() {
			ctx, cancel := context.WithTimeout(s.renewCtx, renewTimeout)
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					r.err = fmt.Errorf("internal error: %v", p)
				}
				s.mu.Lock()
				delete(s.renewing, provider)
				s.mu.Unlock()
				close(r.done)
			}()
			r.cred, r.err = s.renew(ctx, provider, rejected, now, renew)
		})
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.cred, r.err
	case <-ctx.Done():
		return Credential{}, ctx.Err()
	}
}

// current returns the stored credential. fresh reports whether it can be used without a renewal.
func (s *Store) current(provider, rejected string, now time.Time) (c Credential, fresh bool, err error) {
	all, err := s.All()
	c, ok := all[provider]
	switch {
	case !ok && err != nil:
		return Credential{}, false, err
	case !ok || c.Type != OAuth:
		return Credential{}, false, ErrNone
	case c.Ended:
		return Credential{}, false, ErrEnded
	}
	left := c.Expires.Sub(now)
	fresh = c.Access.Reveal() != rejected && (c.Expires.IsZero() || left > renewBefore)
	if !fresh && c.Refresh.Reveal() == "" && c.Access.Reveal() != rejected && left > 0 {
		fresh = true // it cannot be renewed, so it is used until it expires
	}
	return c, fresh, nil
}

// renew renews a login. A lock file keeps other processes from renewing it at the same time.
func (s *Store) renew(ctx context.Context, provider, rejected string, now func() time.Time, renew Renewer) (Credential, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Credential{}, fmt.Errorf("renew the login: %w", err)
	}
	name := sha256.Sum256([]byte(provider))
	release, err := filelock.Acquire(ctx, filepath.Join(s.dir, "renew-"+hex.EncodeToString(name[:8])+".lock"), 20*time.Millisecond)
	if err != nil {
		return Credential{}, fmt.Errorf("renew the login: %w", err)
	}
	defer release()
	old, fresh, err := s.current(provider, rejected, now())
	if err != nil || fresh {
		return old, err
	}
	refresh := old.Refresh.Reveal()
	next, err := Credential{}, ErrEnded
	if refresh != "" {
		next, err = renew(ctx, old)
	}
	if errors.Is(err, ErrEnded) {
		// The login is not deleted, so that the user learns that it has ended.
		old.Ended, old.Access, old.Refresh, old.Expires = true, Secret{}, Secret{}, time.Time{}
		if failed := s.replace(ctx, provider, refresh, old); failed != nil {
			return Credential{}, errors.Join(err, failed)
		}
		return Credential{}, err
	}
	if err != nil {
		return Credential{}, err
	}
	next.Type, next.URL, next.Models, next.Method, next.For, next.ClientSecret = OAuth, old.URL, old.Models, old.Method, old.For, old.ClientSecret
	return next, s.replace(ctx, provider, refresh, next)
}

// replace stores the new state of a login, unless the user has logged out, or logged in again, in the
// meantime. refresh is the refresh token of the login that was renewed.
func (s *Store) replace(ctx context.Context, provider, refresh string, c Credential) error {
	return s.update(ctx, func(d *document) (bool, error) {
		stored, ok := d.credentials[provider]
		if e, isInKeychain := d.keychainEntries[provider]; isInKeychain {
			var err error
			if stored, err = s.fromKeychain(e); err != nil {
				return false, err
			}
			ok = true
		}
		if !ok || stored.Refresh.Reveal() != refresh {
			return false, nil
		}
		raw, err := s.storeSecrets(provider, c, d)
		if err == nil {
			d.entries[provider] = raw
		}
		return true, err
	})
}

// closeTimeout is how long Close waits for renewals. If a renewal is stopped after the server has accepted
// the refresh token, the new tokens are not stored, and the login is lost.
const closeTimeout = 5 * time.Second

// Close waits up to closeTimeout for renewals, then stops them.
func (s *Store) Close() {
	done := make(chan struct{})
	go func() {
		s.renewals.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	s.stop()
	<-done
}
