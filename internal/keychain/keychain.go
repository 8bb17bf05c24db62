// Package keychain stores secrets in the system's keychain: Keychain on macOS, Credential Manager
// on Windows, the Secret Service (GNOME Keyring, KWallet) elsewhere.
//
// No call takes longer than a limit, even if a keychain waits for a password that no user can
// enter, and no keychain is started on a machine without a session. A call that hangs is abandoned,
// and no other call is made until it ends, so there is at most one. Errors contain no secrets.
package keychain

import (
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name of the service under which all secrets are stored.
const service = "eca"

// Limit is how long a call may take. An unlocked keychain answers in milliseconds.
const Limit = 3 * time.Second

// ErrNone means that there is no secret with that name.
var ErrNone = errors.New("the keychain has no such secret")

// ErrSilent means that the keychain did not answer in time.
var ErrSilent = fmt.Errorf("the system's keychain did not answer within %s; is it locked?", Limit)

// ErrAbsent means that this machine, or this session, has no keychain.
var ErrAbsent = errors.New("there is no keychain in this session")

// Ring is a keychain.
type Ring struct {
	backend  backend
	limit    time.Duration
	absent   func() bool
	callSlot chan struct{} // full while a call is running
}

// backend is what the operating system offers.
type backend interface {
	Set(service, user, secret string) error
	Get(service, user string) (string, error)
	Delete(service, user string) error
}

// System returns the system's keychain; getenv reads the environment.
func System(getenv func(string) string) *Ring {
	return &Ring{backend: system{}, limit: Limit, absent: func() bool { return noSession(getenv) }, callSlot: make(chan struct{}, 1)}
}

// Set stores a secret under a name, replacing an earlier one.
func (r *Ring) Set(name, secret string) error {
	_, err := r.call(func() (string, error) { return "", r.backend.Set(service, name, secret) })
	return err
}

// Get returns the secret with a name, or ErrNone.
func (r *Ring) Get(name string) (string, error) {
	return r.call(func() (string, error) { return r.backend.Get(service, name) })
}

// Delete deletes a secret; a missing one is not an error.
func (r *Ring) Delete(name string) error {
	_, err := r.call(func() (string, error) { return "", r.backend.Delete(service, name) })
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

func (r *Ring) call(backendCall func() (string, error)) (string, error) {
	if r.absent() {
		return "", ErrAbsent
	}
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case r.callSlot <- struct{}{}:
	case <-timer.C:
		return "", ErrSilent
	}
	type result struct {
		secret string
		err    error
	}
	done := make(chan result, 1)
	go func() { // not waited for: the keychain may hang
		defer func() { <-r.callSlot }()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: errors.New("the system's keychain failed")}
			}
		}()
		secret, err := backendCall()
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
