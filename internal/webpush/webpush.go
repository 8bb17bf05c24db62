// Package webpush encrypts and signs messages for the push services of browsers: RFC 8291 (encryption
// with aes128gcm) and RFC 8292 (VAPID).
//
// It guarantees that only the browser that made a subscription can read a message, and that all
// messages have the same length. It sends nothing; the caller posts what Message returns to the
// subscription's endpoint, which is an address that a client chose.
//
// The entry points are NewKey, Subscription.Check and Key.Message.
package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// MaxText is the maximum length of a text in bytes. Shorter texts are padded, so that all messages
	// have the same length.
	MaxText = 1000
	// maxEndpoint limits the address of a subscription, in bytes. Known addresses have 200 to 500.
	maxEndpoint = 2000
	authSize    = 16
	saltSize    = 16
	keySize     = 16
	nonceSize   = 12
	coordinate  = 32 // bytes of a number of P-256
	// tokenLife is how long a push service accepts a signature; at most a day is allowed.
	tokenLife = 12 * time.Hour
)

// Subscription is what a browser gives to a page that subscribes.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys are what messages for a subscription are encrypted with.
type Keys struct {
	P256DH string `json:"p256dh"` // the browser's public key
	Auth   string `json:"auth"`   // a secret of 16 bytes
}

// Check returns why a subscription cannot be used. It does not judge the host of the endpoint.
func (s Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	switch {
	case len(s.Endpoint) > maxEndpoint:
		return fmt.Errorf("the endpoint has more than %d bytes", maxEndpoint)
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("the endpoint is not an absolute URL without a user name and a fragment")
	}
	_, _, err = s.secrets()
	return err
}

// secrets decodes the keys. Browsers leave out the padding of base64.
func (s Subscription) secrets() (browser *ecdh.PublicKey, auth []byte, err error) {
	point, err := base64.RawURLEncoding.DecodeString(s.Keys.P256DH)
	if err == nil {
		browser, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return nil, nil, errors.New("keys.p256dh is not a public key")
	}
	auth, err = base64.RawURLEncoding.DecodeString(s.Keys.Auth)
	if err != nil || len(auth) != authSize {
		return nil, nil, fmt.Errorf("keys.auth does not have %d bytes", authSize)
	}
	return browser, auth, nil
}

// Key identifies a sender to push services.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new key.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return Key{private}, err
}

// ParseKey reads what Text wrote.
func ParseKey(text string) (Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Key{}, err
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	return Key{private}, err
}

// Text returns the private key in base64, as other tools for VAPID keys write it.
func (k Key) Text() (string, error) {
	raw, err := k.private.Bytes()
	return base64.RawURLEncoding.EncodeToString(raw), err
}

// Public returns the public key, as pages pass it to the browser.
func (k Key) Public() (string, error) {
	raw, err := k.private.PublicKey.Bytes()
	return base64.RawURLEncoding.EncodeToString(raw), err
}

// Message returns the header and the body of the request that sends a text to a subscription. contact is
// a URL at which a push service learns who sends; ttl is how long the service keeps the message.
func (k Key) Message(s Subscription, text []byte, contact string, ttl time.Duration, now time.Time) (http.Header, []byte, error) {
	sender, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	body, err := encrypt(s, text, sender, salt, MaxText)
	if err != nil {
		return nil, nil, err
	}
	authorization, err := k.authorization(s.Endpoint, contact, now)
	if err != nil {
		return nil, nil, err
	}
	header := http.Header{}
	header.Set("Authorization", authorization)
	header.Set("Content-Encoding", "aes128gcm")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("TTL", fmt.Sprint(int(ttl.Seconds())))
	header.Set("Urgency", "high") // a sleeping phone gets less urgent messages only when it wakes up
	return header, body, nil
}

// authorization signs for the origin of an endpoint (RFC 8292).
func (k Key) authorization(endpoint, contact string, now time.Time) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"aud": u.Scheme + "://" + u.Host, "exp": now.Add(tokenLife).Unix(), "sub": contact})
	if err != nil {
		return "", err
	}
	encoding := base64.RawURLEncoding
	signed := encoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encoding.EncodeToString(claims)
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, hash[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 2*coordinate)
	r.FillBytes(signature[:coordinate])
	s.FillBytes(signature[coordinate:])
	public, err := k.Public()
	return "vapid t=" + signed + "." + encoding.EncodeToString(signature) + ", k=" + public, err
}

// encrypt returns a text as the single record of RFC 8188 that RFC 8291 asks for, padded to size bytes.
func encrypt(s Subscription, text []byte, sender *ecdh.PrivateKey, salt []byte, size int) ([]byte, error) {
	if len(text) > size {
		return nil, fmt.Errorf("the text has %d bytes, and at most %d are possible", len(text), size)
	}
	browser, auth, err := s.secrets()
	if err != nil {
		return nil, err
	}
	shared, err := sender.ECDH(browser)
	if err != nil {
		return nil, err
	}
	public := sender.PublicKey().Bytes()
	key, nonce, err := derive(shared, auth, salt, browser.Bytes(), public)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	const lastRecord = 2 // the delimiter before the padding
	plain := make([]byte, size+1)
	copy(plain, text)
	plain[len(text)] = lastRecord
	out := append([]byte{}, salt...)
	out = binary.BigEndian.AppendUint32(out, maxRecord)
	out = append(append(out, byte(len(public))), public...)
	return gcm.Seal(out, nonce, plain, nil), nil
}

// maxRecord is the size of records that the header names; push services take 4096 bytes.
const maxRecord = 4096

// derive returns the key and the nonce of a message.
func derive(shared, auth, salt, browser, sender []byte) (key, nonce []byte, err error) {
	info := "WebPush: info\x00" + string(browser) + string(sender)
	ikm, err := hkdf.Key(sha256.New, shared, auth, info, sha256.Size)
	if err != nil {
		return nil, nil, err
	}
	if key, err = hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", keySize); err != nil {
		return nil, nil, err
	}
	nonce, err = hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", nonceSize)
	return key, nonce, err
}
