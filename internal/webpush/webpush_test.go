package webpush

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// example is the subscription of RFC 8291, section 5.
func example() Subscription {
	return Subscription{Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV", Keys: Keys{
		P256DH: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: "BTBZMqHH6r4Tts7J_aSIgg",
	}}
}

// The example of RFC 8291 is reproduced byte for byte.
func TestEncryptExample(t *testing.T) {
	text := "When I grow up, I want to be a watermelon"
	sender, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := encrypt(example(), []byte(text), sender, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"), len(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if got := base64.RawURLEncoding.EncodeToString(body); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

// A push service can check a message's signature with the public key, and all messages have the same length.
func TestMessage(t *testing.T) {
	fresh, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := fresh.Text()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	header, short, err := key.Message(example(), []byte("x"), "https://example.com", time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	_, long, err := key.Message(example(), []byte(strings.Repeat("x", MaxText)), "https://example.com", time.Hour, now)
	if err != nil || len(short) != len(long) || len(long) > maxRecord {
		t.Errorf("%d and %d bytes: %v", len(short), len(long), err)
	}
	if _, _, err := key.Message(example(), make([]byte, MaxText+1), "https://example.com", time.Hour, now); err == nil {
		t.Error("a text that is too long is sent")
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	token, k, _ := strings.Cut(strings.TrimPrefix(header.Get("Authorization"), "vapid t="), ", k=")
	parts := strings.Split(token, ".")
	if k != public || len(parts) != 3 {
		t.Fatalf("Authorization: %s", header.Get("Authorization"))
	}
	point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), decode(t, public))
	if err != nil {
		t.Fatal(err)
	}
	signature, hash := decode(t, parts[2]), sha256.Sum256([]byte(parts[0]+"."+parts[1]))
	if !ecdsa.Verify(point, hash[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	var claims map[string]any
	if err := json.Unmarshal(decode(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if claims["aud"] != "https://push.example.net" || claims["sub"] != "https://example.com" || claims["exp"] != float64(now.Add(tokenLife).Unix()) {
		t.Errorf("claims: %v", claims)
	}
	if header.Get("TTL") != "3600" || header.Get("Content-Encoding") != "aes128gcm" {
		t.Errorf("header: %v", header)
	}
}

// A subscription is refused unless a message can be encrypted for it.
func TestCheck(t *testing.T) {
	if err := example().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Subscription){
		"endpoint is missing":             func(s *Subscription) { s.Endpoint = "" },
		"endpoint is not an absolute URL": func(s *Subscription) { s.Endpoint = "https://a b" },
		"endpoint has a user":             func(s *Subscription) { s.Endpoint = "https://me@example.com/" },
		"endpoint is long":                func(s *Subscription) { s.Endpoint = "https://example.com/" + strings.Repeat("x", maxEndpoint) },
		"key is missing":                  func(s *Subscription) { s.Keys.P256DH = "" },
		"key is not on the curve":         func(s *Subscription) { s.Keys.P256DH = "BA" + strings.Repeat("A", 85) },
		"key is the point at zero":        func(s *Subscription) { s.Keys.P256DH = "AA" },
		"secret is missing":               func(s *Subscription) { s.Keys.Auth = "" },
		"secret is short":                 func(s *Subscription) { s.Keys.Auth = "AAAA" },
		"secret is not base64":            func(s *Subscription) { s.Keys.Auth = "%%" },
	} {
		s := example()
		if change(&s); s.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
