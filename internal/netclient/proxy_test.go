package netclient

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func connectsDirectly(t testing.TB, exceptions, address string) bool {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"all_proxy": "proxy.example:3128", "no_proxy": exceptions}
	at, err := ProxiesOf(func(name string) string { return env[name] }).For(u)
	if err != nil {
		t.Fatal(err)
	}
	return at == nil
}

func TestNoProxy(t *testing.T) {
	for _, c := range []struct {
		exceptions, url string
		want            bool
	}{
		{"", "http://a.example", false},
		{"*", "http://a.example", true},
		{"b.example,*", "https://a.example:8443", true},
		{"a.example", "http://a.example", true},
		{"a.example", "http://a.example:8080", true},
		{"a.example", "http://A.EXAMPLE./path", true},
		{"A.Example.", "http://a.example", true},
		{"a.example", "http://sub.a.example", true},
		{"a.example", "http://nota.example", false},
		{"a.example", "http://a.example.org", false},
		{".a.example", "http://sub.a.example", true},
		{".a.example", "http://a.example", false},
		{"*.a.example", "http://deep.sub.a.example", true},
		{"*.a.example", "http://a.example", false},
		{"*.a.example", "http://xa.example", false},
		{"a.example:8080", "http://a.example:8080", true},
		{"a.example:8080", "http://a.example", false},
		{"a.example:443", "https://a.example", true},
		{"a.example:443", "http://a.example", false},
		{"a.example:80", "http://a.example", true},
		{".a.example:80", "http://sub.a.example", true},
		{" b.example , a.example ", "http://a.example", true},
		{"b.example a.example", "http://a.example", true},
		{",, ,", "http://a.example", false},
		{"10.1.2.3", "http://10.1.2.3:99", true},
		{"10.1.2.3:99", "http://10.1.2.3:99", true},
		{"10.1.2.3:98", "http://10.1.2.3:99", false},
		{"10.1.2.3", "http://10.1.2.30", false},
		{"10.1.2.3", "http://[::ffff:10.1.2.3]", true},
		{"10.0.0.0/8", "http://10.1.2.3", true},
		{"10.1.2.3/8", "http://10.9.9.9", true},
		{"10.0.0.0/8", "http://11.1.2.3", false},
		{"10.0.0.0/8", "http://host-10.example", false},
		{"::ffff:10.0.0.0/104", "http://10.1.2.3", true},
		{"fd00::/8", "http://[fd12::1]:8080", true},
		{"fd00::/8", "http://[fe80::1]", false},
		{"[fd12::1]:8080", "http://[fd12::1]:8080", true},
		{"[fd12::1]", "http://[fd12::1]", true},
		{"fd12::1", "http://[fd12:0::1]", true},
		{".", "http://a.example", false},
		{"*.", "http://a.example", false},
		{":80", "http://a.example", false},
		{"/8", "http://10.1.2.3", false},
		// This machine is reached directly without an exception.
		{"", "http://localhost:11434", true},
		{"", "http://LOCALHOST", true},
		{"", "http://llm.localhost", true},
		{"", "http://127.0.0.1:1234", true},
		{"", "http://127.8.9.10", true},
		{"", "http://[::1]:1234", true},
		{"", "http://localhost.example", false},
		{"", "http://127.0.0.1.example", false},
	} {
		if got := connectsDirectly(t, c.exceptions, c.url); got != c.want {
			t.Errorf("no_proxy=%q: %s is reached directly: %v", c.exceptions, c.url, got)
		}
	}
}

// no_proxy can have any text. More separators do not change its meaning, and separators alone make no
// exception.
func FuzzNoProxy(f *testing.F) {
	for _, s := range []string{"*", "a.example:80,.b", "10.0.0.0/8", "[::1]:x", "::ffff:1.2.3.4/3", "*.", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, exceptions string) {
		const at = "http://sub.a.example"
		if plain := connectsDirectly(t, exceptions, at); plain != connectsDirectly(t, " "+exceptions+",,", at) {
			t.Errorf("more separators change the meaning of %q", exceptions)
		}
		if strings.Trim(exceptions, ", \t\n") == "" && connectsDirectly(t, exceptions, at) {
			t.Errorf("%q has only separators, but makes an exception", exceptions)
		}
	})
}

// In each of these forms of a proxy's URL, its password is known as a secret, and the shown text
// does not contain it.
func TestProxySecrets(t *testing.T) {
	for value, want := range map[string][]string{
		"http://proxy:80":                nil,
		"http://me@proxy:80":             nil,
		"http://me:pass@proxy:80":        {"pass"},
		"me:pass@proxy:80":               {"pass"},
		"socks5://me:p%40ss@proxy":       {"p%40ss", "p@ss"},
		"http://me:p@ss@proxy:80":        {"p%40ss", "p@ss"},
		"gopher://me:pass@proxy":         {"gopher://me:pass@proxy"},
		"http://me:pa/ss@proxy":          {"http://me:pa/ss@proxy"},
		"http://":                        {"http://"},
		"http://me:pass@proxy:80/?x=y#z": {"pass"},
	} {
		env := map[string]string{"HTTPS_PROXY": value}
		p := ProxiesOf(func(name string) string { return env[name] })
		if got := p.Secrets(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", value, got)
		}
		info := p.List()[0]
		if info.Variable != "HTTPS_PROXY" || (info.Problem == "") == (info.URL == "") {
			t.Errorf("%s: %+v", value, info)
		}
	}
}
