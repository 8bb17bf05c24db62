package auth

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/internal/keychain"
)

// Keychain is the system's store for secrets. Its calls return within seconds, and their errors
// can be shown (internal/keychain).
type Keychain interface {
	Set(name, secret string) error
	Get(name string) (string, error)
	Delete(name string) error
}

// Place is where secrets are stored (`auth.store` in the configuration).
type Place string

// The places for secrets.
const (
	Auto       Place = "auto"     // the keychain if it works, otherwise the file
	InKeychain Place = "keychain" // only the keychain
	InFile     Place = "file"
)

// keychainPause is how long a keychain is not used after a failure, because each access may take
// seconds.
const keychainPause = time.Minute

// Keep sets where new secrets are stored. It does not move stored secrets. An empty place means Auto.
func (s *Store) Keep(p Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == "" {
		p = Auto
	}
	s.place = p
}

// addFromKeychain reads the secrets of d's entries that are in the keychain, and adds these
// credentials to d.
func (s *Store) addFromKeychain(d *document) error {
	var errs []error
	for _, provider := range slices.Sorted(maps.Keys(d.keychainEntries)) {
		c, err := s.fromKeychain(d.keychainEntries[provider])
		if err != nil {
			errs = append(errs, fmt.Errorf(`the login for provider %s is in the system's keychain and cannot be used: %w (log in again; "auth": {"store": "file"} keeps logins in a file)`, provider, err))
			if errors.Is(err, keychain.ErrSilent) {
				break // the next access would take as long
			}
			continue
		}
		d.credentials[provider] = c
	}
	return errors.Join(errs...)
}

func (s *Store) fromKeychain(e entry) (Credential, error) {
	if s.keychain == nil {
		return Credential{}, errors.New("this system has no keychain")
	}
	text, err := s.keychain.Get(e.Name)
	if err != nil {
		return Credential{}, err
	}
	if json.Unmarshal([]byte(text), &e.secrets) != nil {
		return Credential{}, errors.New("its entry was not written by eca")
	}
	c, err := e.credential()
	if err != nil {
		return Credential{}, fmt.Errorf("its entry %w", err)
	}
	return c, nil
}

// storeSecrets stores the secrets of a credential in the keychain, or in the entry for the file,
// according to the configured place. It returns the entry.
func (s *Store) storeSecrets(provider string, c Credential, d *document) (json.RawMessage, error) {
	e := newEntry(c)
	s.mu.Lock()
	place := s.place
	s.mu.Unlock()
	if place != InFile && e.secrets != (secrets{}) {
		err := s.intoKeychain(provider, &e)
		if err != nil && place == InKeychain {
			return nil, fmt.Errorf(`the login is not stored: %w ("auth": {"store": "file"} keeps logins in a file that only you can read)`, err)
		}
		if err == nil {
			return json.Marshal(e)
		}
	}
	_ = s.deleteFromKeychain(provider, d) // after a failure, an unused secret stays in the keychain
	return json.Marshal(e)
}

// intoKeychain moves an entry's secrets into the keychain.
func (s *Store) intoKeychain(provider string, e *entry) error {
	if s.keychain == nil {
		return errors.New("no keychain is available")
	}
	text, err := json.Marshal(e.secrets)
	if err != nil {
		return err
	}
	// The folder is part of the name, because each state directory has its own logins.
	name := provider + " in " + s.dir
	if err := s.keychain.Set(name, string(text)); err != nil {
		return err
	}
	e.Type, e.Of, e.Name, e.Stamp, e.secrets = inKeychain, e.Type, name, rand.Text(), secrets{}
	return nil
}

// deleteFromKeychain deletes a provider's secrets from the keychain, if they are there.
func (s *Store) deleteFromKeychain(provider string, d *document) error {
	e, ok := d.keychainEntries[provider]
	if !ok {
		return nil
	}
	if s.keychain == nil {
		return errors.New("the login is in a keychain that is not available now")
	}
	if err := s.keychain.Delete(e.Name); err != nil {
		return fmt.Errorf("the login cannot be removed: %w", err)
	}
	return nil
}
