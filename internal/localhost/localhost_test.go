package localhost

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost.": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example": false, "alocalhost": false, "127.0.0.1.example": false, "10.0.0.1": false, "0.0.0.0": false, "::": false, "[::1]": false,
	} {
		if Is(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
	for address, want := range map[string]bool{
		"http://localhost:1/x": true, "https://[::1]": true, "http://127.8.8.8": true, "http://127.0.0.1@a.example": false, "http://127.example.com": false, "https://example.com/localhost": false, "localhost": false, "%": false, "": false,
	} {
		if IsURL(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}
