package jet

import (
	"fmt"

	"github.com/nats-io/nkeys"
)

// Key is an nkey (a key pair of NATS), including its secret part. It identifies its owner to servers,
// and signs data.
type Key struct {
	pair   nkeys.KeyPair
	public string
}

// NewKey creates a user nkey.
func NewKey() (*Key, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("cannot create an nkey: %w", err)
	}
	return newKey(pair)
}

// ParseKey parses the seed of an nkey.
func ParseKey(seed []byte) (*Key, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("cannot read the nkey: %w", err)
	}
	return newKey(pair)
}

func newKey(pair nkeys.KeyPair) (*Key, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("cannot read the public key of the nkey: %w", err)
	}
	return &Key{pair, public}, nil
}

// Public returns the public key.
func (k *Key) Public() string { return k.public }

// Seed returns the secret seed.
func (k *Key) Seed() ([]byte, error) { return k.pair.Seed() }

// Sign returns a signature.
func (k *Key) Sign(data []byte) ([]byte, error) { return k.pair.Sign(data) }

// Verify checks a signature by a public key.
func Verify(public string, data, signature []byte) error {
	key, err := nkeys.FromPublicKey(public)
	if err != nil {
		return err
	}
	return key.Verify(data, signature)
}
