package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// memoryKeychain is a keychain in memory; err, if set, is what it answers.
type memoryKeychain struct {
	mu      sync.Mutex // guards what follows
	secrets map[string]string
	err     error
	asked   int
}

func newMemoryKeychain() *memoryKeychain { return &memoryKeychain{secrets: map[string]string{}} }

func (r *memoryKeychain) Set(name, secret string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.secrets[name] = secret
	}
	return r.err
}

func (r *memoryKeychain) Get(name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if s, ok := r.secrets[name]; ok || r.err != nil {
		return s, r.err
	}
	return "", errors.New("no such secret")
}

func (r *memoryKeychain) Delete(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.secrets, name)
	return r.err
}

func (r *memoryKeychain) fails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func oauthCredential() Credential {
	return Credential{
		Type: OAuth, Access: NewSecret(key + "-access"), Refresh: NewSecret(key + "-refresh"), Expires: time.Unix(1e9, 0), Method: "device",
		URL: "https://x.example", For: Binding{TokenURL: "https://x.example/token", ClientID: "c", Provider: "https://x.example"},
	}
}

func equal(a, b Credential) bool {
	return fmt.Sprint(a.Secrets(), a.Type, a.URL, a.Expires.Unix(), a.Ended, a.Method, a.For) == fmt.Sprint(b.Secrets(), b.Type, b.URL, b.Expires.Unix(), b.Ended, b.Method, b.For)
}

// With a keychain, the file contains no secret, and another process reads the logins nevertheless.
func TestKeychain(t *testing.T) {
	for _, place := range []Place{Auto, InKeychain, InFile} {
		dir, k := t.TempDir(), newMemoryKeychain()
		s := New(dir, k)
		s.Keep(place)
		set(t, s, "openai", key)
		want := oauthCredential()
		if err := s.Set(context.Background(), "acme", want); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(s.Path())
		if inFile := strings.Contains(string(data), key); err != nil || inFile != (place == InFile) || len(k.secrets) == 0 != (place == InFile) {
			t.Errorf("%s: %d secrets in the keychain, file: %s, %v", place, len(k.secrets), data, err)
		}
		for _, s := range []*Store{s, New(dir, k)} {
			all, err := s.All()
			if err != nil || !equal(all["acme"], want) || all["openai"].Key.Reveal() != key {
				t.Errorf("%s: %v, %v", place, all, err)
			}
			before := k.asked
			if _, err := s.All(); err != nil || k.asked != before {
				t.Errorf("%s: the keychain is asked each time: %v", place, err)
			}
		}
		// A moved or forgotten login leaves nothing behind.
		s.Keep(InFile)
		set(t, s, "openai", "second-"+key)
		if existed, err := s.Delete(context.Background(), "acme"); !existed || err != nil || len(k.secrets) > 0 || get(t, New(dir, nil), "openai") != "second-"+key {
			t.Errorf("%s: %v, %v, %v", place, existed, err, k.secrets)
		}
	}
}

// If the keychain fails, only the logins in it cannot be read. A new login is stored in the file, or
// the error says why not.
func TestKeychainFails(t *testing.T) {
	dir, k := t.TempDir(), newMemoryKeychain()
	s := New(dir, k)
	set(t, s, "inside", key)
	k.fails(errors.New("locked"))
	set(t, s, "outside", key)
	other := New(dir, k)
	all, err := other.All()
	if err == nil || !strings.Contains(err.Error(), "locked") || !strings.Contains(err.Error(), "inside") || all["outside"].Key.Reveal() != key || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	asked := k.asked
	if _, err := other.All(); err == nil || k.asked != asked {
		t.Errorf("a keychain that failed is asked again at once: %v", err)
	}
	s.Keep(InKeychain)
	if err := s.Set(context.Background(), "p", Credential{Type: APIKey, Key: NewSecret(key)}); err == nil || !strings.Contains(err.Error(), "locked") || strings.Contains(err.Error(), key) {
		t.Errorf("%v", err)
	}
	if _, err := New(dir, nil).All(); err == nil || !strings.Contains(err.Error(), "inside") {
		t.Errorf("without a keychain: %v", err)
	}
}

// A renewal continues although its caller is cancelled, is shared by concurrent callers, and does
// not undo a login or logout of the user meanwhile.
func TestToken(t *testing.T) {
	ctx := context.Background()
	now := func() time.Time { return time.Unix(1e9, 0) }
	begun, goOn := make(chan struct{}), make(chan struct{})
	calls := 0
	renew := func(_ context.Context, old Credential) (Credential, error) {
		calls++
		begun <- struct{}{}
		<-goOn
		if old.Refresh.Reveal() != key+"-refresh" {
			return Credential{}, ErrEnded
		}
		return Credential{Access: NewSecret("next"), Refresh: NewSecret("next-refresh"), Expires: time.Unix(2e9, 0)}, nil
	}
	dir := t.TempDir()
	s := New(dir, nil)
	defer s.Close()
	if _, err := s.Token(ctx, "p", "", now, renew); !errors.Is(err, ErrNone) {
		t.Errorf("without a login: %v", err)
	}
	if err := s.Set(ctx, "p", oauthCredential()); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(ctx)
	left := make(chan error)
	go func() {
		_, err := s.Token(impatient, "p", "", now, renew)
		left <- err
	}()
	<-begun
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if c, err := s.Token(ctx, "p", "", now, renew); err != nil || c.Access.Reveal() != "next" || c.Method != "device" || c.For.ClientID != "c" {
				t.Errorf("%v, %v", c, err)
			}
		})
	}
	close(goOn)
	waiting.Wait()
	if calls != 1 {
		t.Errorf("renewed %d times", calls)
	}
	if all, err := New(dir, nil).All(); err != nil || all["p"].Refresh.Reveal() != "next-refresh" {
		t.Errorf("stored: %v, %v", all, err)
	}

	// A login that the user removes during its renewal is not stored again.
	if err := s.Set(ctx, "p", oauthCredential()); err != nil {
		t.Fatal(err)
	}
	goOn = make(chan struct{})
	go func() {
		_, err := s.Token(ctx, "p", "", now, renew)
		left <- err
	}()
	<-begun
	if _, err := s.Delete(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-left; err != nil {
		t.Errorf("%v", err)
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("after the logout: %v, %v", all, err)
	}
}

// An ended login is reported, and not forgotten.
func TestTokenEnds(t *testing.T) {
	ctx, now := context.Background(), func() time.Time { return time.Unix(1e9, 0) }
	s := New(t.TempDir(), newMemoryKeychain())
	defer s.Close()
	never := func(context.Context, Credential) (Credential, error) {
		return Credential{}, errors.New("must not be asked")
	}
	c := oauthCredential()
	c.Refresh = Secret{}
	c.Expires = time.Unix(1e9+30, 0)
	if err := s.Set(ctx, "p", c); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Token(ctx, "p", "", now, never); err != nil || got.Access.Reveal() != key+"-access" {
		t.Errorf("good to the end: %v, %v", got, err)
	}
	for range 2 {
		if _, err := s.Token(ctx, "p", key+"-access", now, never); !errors.Is(err, ErrEnded) {
			t.Errorf("%v", err)
		}
	}
	if all, err := s.All(); err != nil || !all["p"].Ended || len(all["p"].Secrets()) > 0 || all["p"].Method != "device" {
		t.Errorf("%v, %v", all, err)
	}
}
