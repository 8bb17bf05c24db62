// Package keychain keeps secrets in the system's keychain: Keychain on macOS, Credential
// Manager on Windows, the Secret Service (GNOME Keyring, KWallet) elsewhere.
//
// It guarantees that no call takes longer than a limit, also where a keychain waits for
// a password that no user can enter, and that no keychain is started where it is missing (a
// machine without a session). A call that hangs is left behind, and until it ends no
// other is made: there is at most one. Errors contain no secret.
package keychain

import (
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name below which everything is kept.
const service = "eca"

// Limit is how long a call may take. Keychains that are open answer in milliseconds.
const Limit = 3 * time.Second

// ErrNone says that there is no secret by that name.
var ErrNone = errors.New("the keychain has no such secret")

// ErrSilent says that the keychain did not answer in time.
var ErrSilent = fmt.Errorf("the system's keychain did not answer within %s; is it locked?", Limit)

// ErrAbsent says that this machine, or this session, has no keychain.
var ErrAbsent = errors.New("there is no keychain in this session")

// Ring is a keychain.
type Ring struct {
	backend backend
	limit   time.Duration
	absent  func() bool
	turn    chan struct{} // held by the call that runs
}

// backend is what the operating system offers.
type backend interface {
	Set(service, user, secret string) error
	Get(service, user string) (string, error)
	Delete(service, user string) error
}

// System returns the system's keychain; getenv is its environment.
func System(getenv func(string) string) *Ring {
	return &Ring{backend: system{}, limit: Limit, absent: func() bool { return noSession(getenv) }, turn: make(chan struct{}, 1)}
}

// Set keeps a secret by a name, in place of an earlier one.
func (r *Ring) Set(name, secret string) error {
	_, err := r.call(func() (string, error) { return "", r.backend.Set(service, name, secret) })
	return err
}

// Get returns the secret by a name; or ErrNone.
func (r *Ring) Get(name string) (string, error) {
	return r.call(func() (string, error) { return r.backend.Get(service, name) })
}

// Delete forgets a secret; a missing one is not an error.
func (r *Ring) Delete(name string) error {
	_, err := r.call(func() (string, error) { return "", r.backend.Delete(service, name) })
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

func (r *Ring) call(do func() (string, error)) (string, error) {
	if r.absent() {
		return "", ErrAbsent
	}
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case r.turn <- struct{}{}:
	case <-timer.C:
		return "", ErrSilent
	}
	type result struct {
		secret string
		err    error
	}
	done := make(chan result, 1)
	go func() { // the keychain decides when it ends
		defer func() { <-r.turn }()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: errors.New("the system's keychain failed")}
			}
		}()
		secret, err := do()
		done <- result{secret, err}
	}()
	select {
	case got := <-done:
		switch {
		case errors.Is(got.err, keyring.ErrNotFound):
			return "", ErrNone
		case got.err != nil:
			return "", fmt.Errorf("the system's keychain: %w", got.err)
		}
		return got.secret, nil
	case <-timer.C:
		return "", ErrSilent
	}
}

// system is the operating system's keychain.
type system struct{}

func (system) Set(service, user, secret string) error   { return keyring.Set(service, user, secret) }
func (system) Get(service, user string) (string, error) { return keyring.Get(service, user) }
func (system) Delete(service, user string) error        { return keyring.Delete(service, user) }
