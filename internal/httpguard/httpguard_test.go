package httpguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestListenAddress(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8765": "127.0.0.1:8765", ":0": "127.0.0.1:0", "localhost:1": "localhost:1", "[::1]:2": "[::1]:2",
		"0.0.0.0:1": "", "10.1.2.3:1": "", "8765": "", "example.org:80": "",
	} {
		if got, err := ListenAddress(address, "", ""); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	if got, err := ListenAddress("0.0.0.0:1", "token", ""); got != "0.0.0.0:1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The guard refuses a page that points its own name at this machine, a page of another origin, and
// another machine without a token.
func TestGuard(t *testing.T) {
	const app = "https://app.example"
	for _, c := range []struct {
		name, address, token string
		own                  bool
		remote, host         string
		header               []string
		want                 int
	}{
		{name: "this machine", want: 200},
		{name: "its other names", host: "LOCALHOST.:80", want: 200},
		{name: "its other addresses", host: "[::1]:80", want: 200},
		{name: "a rebound name", host: "evil.example", want: 403},
		{name: "a rebound name with a port", host: "evil.example:80", want: 403},
		{name: "a name that may", host: "ESRP.example:1", want: 200},
		{name: "an address that is not listened at", host: "10.0.0.1", want: 403},
		{name: "an address where all are listened at", address: "0.0.0.0:80", host: "10.0.0.1:80", want: 200},
		{name: "a name where all are listened at", address: "[::]:80", host: "evil.example", want: 403},
		{name: "another machine", remote: "192.0.2.1:5", want: 403},
		{name: "an unknown machine", remote: "-", want: 403},
		{name: "another machine with the token", token: "t", remote: "192.0.2.1:5", header: []string{"Authorization", "bearer t"}, want: 200},
		{name: "without the token", token: "t", want: 401},
		{name: "a part of the token", token: "token", header: []string{"Authorization", "Bearer toke"}, want: 401},
		{name: "the token without a scheme", token: "t", header: []string{"Authorization", "t"}, want: 401},
		{name: "a page that may", header: []string{"Origin", app}, want: 200},
		{name: "a page that may, without the token", token: "t", header: []string{"Origin", app}, want: 401},
		{name: "another page", header: []string{"Origin", "https://app.example.evil"}, want: 403},
		{name: "no page's origin", header: []string{"Origin", "null"}, want: 403},
		{name: "an own page", own: true, header: []string{"Origin", "http://localhost:80"}, want: 200},
		{name: "an own page where none may", header: []string{"Origin", "http://localhost:80"}, want: 403},
		{name: "a page of another port", own: true, header: []string{"Origin", "http://localhost:81"}, want: 403},
		{name: "what a page may", token: "t", header: []string{"Origin", app, "Access-Control-Request-Method", "POST"}, want: 204},
		{name: "what another page may", header: []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, want: 403},
		{name: "OPTIONS of a page", token: "t", header: []string{"Origin", app, "X-Other", "POST"}, want: 401},
	} {
		if c.address == "" {
			c.address = "127.0.0.1:80"
		}
		g := New(Options{Address: c.address, Token: c.token, Origins: []string{app}, Hosts: []string{"esrp.example"}}, Pages{Own: c.own, Methods: "POST"})
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", strings.NewReader("x"))
		r.RemoteAddr = "127.0.0.1:5"
		if c.remote != "" {
			r.RemoteAddr = c.remote
		}
		if c.host != "" {
			r.Host = c.host
		}
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
			if i > 0 {
				r.Method = http.MethodOptions
			}
		}
		w := httptest.NewRecorder()
		done, refused := g.Admit(w, r)
		if !done && refused == nil {
			refused = g.Authorize(w, r)
		}
		if refused != nil {
			refused.Write(w)
		}
		if w.Code != c.want || done != (c.want == http.StatusNoContent) || c.want == 403 && w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", c.name, w.Code, w.Header())
		}
	}
}
