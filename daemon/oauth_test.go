package daemon

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
)

// A request that was begun for one server gets no token of another, whether the token is
// good as it is or has to be renewed, though nobody looked at the login before.
func TestTokensAreBound(t *testing.T) {
	d := newDaemon(t, `{"providers": {"acme": {"api": "openai-chat", "url": "https://acme.example/v1", "auth": {"clientId": "c", "tokenUrl": "http://127.0.0.1:1/token"}, "models": {"m": {}}}}}`, nil)
	p := d.Config().Providers["acme"]
	for name, expires := range map[string]time.Time{"good": time.Now().Add(time.Hour), "to be renewed": time.Now().Add(-time.Hour)} {
		for what, change := range map[string]func(*config.Provider, *auth.Binding){
			"the same":       func(*config.Provider, *auth.Binding) {},
			"another server": func(p *config.Provider, _ *auth.Binding) { p.URL = "https://acme.example.evil.example/v1" },
			"without TLS":    func(p *config.Provider, _ *auth.Binding) { p.URL = "http://acme.example/v1" },
			"another client": func(_ *config.Provider, b *auth.Binding) { b.ClientID = "d" },
		} {
			asked, b := p, auth.Binding{TokenURL: "http://127.0.0.1:1/token", ClientID: "c", Provider: "https://acme.example"}
			change(&asked, &b)
			c := auth.Credential{Type: auth.OAuth, Access: auth.NewSecret("access"), Refresh: auth.NewSecret("refresh"), Expires: expires, For: b}
			if err := d.models.creds().Set(t.Context(), "acme", c); err != nil {
				t.Fatal(err)
			}
			got, err := d.models.token(t.Context(), "acme", asked, "")
			switch {
			case what == "the same" && name == "good":
				if got != "access" || err != nil {
					t.Errorf("%s, %s: %q, %v", name, what, got, err)
				}
			case what == "the same":
				if err == nil || errors.Is(err, errElsewhere) { // nobody renews it here
					t.Errorf("%s, %s: %q, %v", name, what, got, err)
				}
			case got != "" || !errors.Is(err, errElsewhere):
				t.Errorf("%s, %s: %q, %v", name, what, got, err)
			}
		}
	}
}
