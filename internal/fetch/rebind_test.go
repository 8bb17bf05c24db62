package fetch

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer makes this process resolve every name to the address until the test ends.
func nameServer(t *testing.T, address netip.Addr) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: address.As4()},
				}}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(raw, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
		<-done
	})
}

// Get refuses a public name that resolves to an address of this machine, unless the user exempts the
// name.
func TestNameOfThisMachine(t *testing.T) {
	nameServer(t, netip.MustParseAddr("127.0.0.1"))
	var reached atomic.Int32
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer secret.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(secret.URL, "http://"), ":")
	address := "http://public.example:" + port + "/"
	if page, err := getter(t, Rules{}, nil).Get(context.Background(), address, 100); err == nil || !strings.Contains(err.Error(), "not on the public internet") {
		t.Errorf("%+v, %v", page, err)
	}
	if reached.Load() > 0 {
		t.Error("this machine was reached")
	}
	if _, err := getter(t, Rules{Private: []string{"public.example"}}, nil).Get(context.Background(), address, 100); err != nil || reached.Load() != 1 {
		t.Errorf("excepted: %v, reached %d times", err, reached.Load())
	}
}
