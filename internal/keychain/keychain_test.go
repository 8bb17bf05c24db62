package keychain

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"
)

// memory is a keychain; while hang is not nil, calls wait for it to close.
type memory struct {
	secrets map[string]string
	hang    chan struct{}
	err     error
	calls   atomic.Int32
}

func (m *memory) wait() {
	m.calls.Add(1)
	if m.hang != nil {
		<-m.hang
	}
}

func (m *memory) Set(service, user, secret string) error {
	m.wait()
	m.secrets[service+"/"+user] = secret
	return m.err
}

func (m *memory) Get(service, user string) (string, error) {
	m.wait()
	s, ok := m.secrets[service+"/"+user]
	if !ok {
		return "", keyring.ErrNotFound
	}
	return s, m.err
}

func (m *memory) Delete(service, user string) error {
	m.wait()
	if _, ok := m.secrets[service+"/"+user]; !ok {
		return keyring.ErrNotFound
	}
	delete(m.secrets, service+"/"+user)
	return m.err
}

func ring(m *memory) *Ring {
	return &Ring{backend: m, limit: Limit, absent: func() bool { return false }, callSlot: make(chan struct{}, 1)}
}

func TestRing(t *testing.T) {
	m := &memory{secrets: map[string]string{}}
	r := ring(m)
	if _, err := r.Get("p"); !errors.Is(err, ErrNone) {
		t.Errorf("Get without a stored secret: %v", err)
	}
	if err := errors.Join(r.Delete("p"), r.Set("p", "one"), r.Set("p", "two")); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Get("p"); s != "two" || err != nil || m.secrets["eca/p"] != "two" {
		t.Errorf("%q, %v", s, err)
	}
	if err := r.Delete("p"); err != nil || len(m.secrets) != 0 {
		t.Errorf("%v, %v", m.secrets, err)
	}
	m.err = errors.New("locked")
	if err := r.Set("p", "s"); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("%v", err)
	}
	r.absent = func() bool { return true }
	before := m.calls.Load()
	if err := r.Set("p", "s"); !errors.Is(err, ErrAbsent) || m.calls.Load() != before {
		t.Errorf("%v", err)
	}
}

// Each call waits for a hanging keychain for at most Limit, and does not ask it again while it hangs.
// Later calls use the keychain again.
func TestHangingKeychain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{secrets: map[string]string{}, hang: make(chan struct{})}
		r := ring(m)
		begun := time.Now()
		for range 2 {
			if err := r.Set("p", "s"); !errors.Is(err, ErrSilent) {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(begun); took != 2*Limit || m.calls.Load() != 1 {
			t.Errorf("%s, %d calls", took, m.calls.Load())
		}
		close(m.hang)
		synctest.Wait()
		if s, err := r.Get("p"); s != "s" || err != nil {
			t.Errorf("%q, %v", s, err)
		}
	})
}

func TestNoSession(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("NOT TESTED: this system always has a keychain; run it on Linux")
	}
	dir := t.TempDir()
	env := map[string]string{}
	getenv := func(k string) string { return env[k] }
	if !noSession(getenv) {
		t.Error("noSession is false without XDG_RUNTIME_DIR and an address")
	}
	env["XDG_RUNTIME_DIR"] = dir
	if !noSession(getenv) {
		t.Error("noSession is false although XDG_RUNTIME_DIR has no bus")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if noSession(getenv) {
		t.Error("noSession is true although XDG_RUNTIME_DIR has a bus")
	}
	if noSession(func(k string) string { return map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}[k] }) {
		t.Error("noSession is true although DBUS_SESSION_BUS_ADDRESS is set")
	}
}
