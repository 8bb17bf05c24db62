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

// early is how long before they expire tokens are renewed (eca-features 5.2).
const early = 60 * time.Second

// renewTime bounds one renewal, with the wait for another process that renews.
const renewTime = 90 * time.Second

// ErrEnded says that a login has ended: the user has to log in again.
var ErrEnded = errors.New("the login has expired")

// ErrNone says that the user is not logged in.
var ErrNone = errors.New("not logged in")

// renewal is a renewal that runs; who comes meanwhile waits for it too.
type renewal struct {
	done chan struct{}
	cred Credential
	err  error
}

// Renewer asks the server for new tokens. An error that wraps ErrEnded means that it
// takes the login no more.
type Renewer func(ctx context.Context, old Credential) (Credential, error)

// Token returns a provider's credential of kind OAuth that is good for a while at the
// time now. rejected is an access token that the provider did not take, or empty: it is
// renewed even if it seemed good.
//
// Refresh tokens are good once. So it is renewed by one process at a time, which looks
// first whether another has done it; callers in this process share one renewal; and it
// goes on when its callers are gone. A login that has ended is stored as such: the error
// wraps ErrEnded. ErrNone means that there is no such login.
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
		s.busy.Go(func() {
			ctx, cancel := context.WithTimeout(s.work, renewTime)
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

// current looks at what is stored. fresh says that it can be used as it is.
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
	fresh = c.Access.Reveal() != rejected && (c.Expires.IsZero() || left > early)
	if !fresh && c.Refresh.Reveal() == "" && c.Access.Reveal() != rejected && left > 0 {
		fresh = true // to the end: there will be no other
	}
	return c, fresh, nil
}

// renew is Token's work while no other process does it.
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
		// Not deleted: the user should learn that it has ended, not that it never existed.
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

// replace stores what a login has become, unless the user has logged out, or in again,
// meanwhile: refresh is the login's.
func (s *Store) replace(ctx context.Context, provider, refresh string, c Credential) error {
	return s.update(ctx, func(d *document) (bool, error) {
		is, ok := d.credentials[provider]
		if e, elsewhere := d.elsewhere[provider]; elsewhere {
			var err error
			if is, err = s.fromKeychain(e); err != nil {
				return false, err
			}
			ok = true
		}
		if !ok || is.Refresh.Reveal() != refresh {
			return false, nil
		}
		raw, err := s.lockAway(provider, c, d)
		if err == nil {
			d.entries[provider] = raw
		}
		return true, err
	})
}

// closeTime is how long Close waits for renewals: a refresh token that was used, and
// whose successor is not stored, costs the user the login.
const closeTime = 5 * time.Second

// Close waits for renewals, for a while, and stops them.
func (s *Store) Close() {
	done := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	s.stop()
	<-done
}
