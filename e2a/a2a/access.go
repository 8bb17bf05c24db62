package a2a

import (
	"net/http"

	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// Guard passes authorized calls to next. The agent card needs no token, only an allowed host.
func Guard(o httpguard.Options, next http.Handler) http.Handler {
	g := httpguard.New(o, httpguard.Pages{Own: true, Methods: "GET, POST, DELETE", Headers: "Content-Type, Accept, Authorization, A2A-Version, A2A-Extensions"})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, refused := g.Admit(w, r)
		if !done && refused == nil && r.URL.Path != CardPath {
			refused = g.Authorize(w, r)
		}
		switch {
		case refused != nil:
			refused.Write(w)
		case !done:
			next.ServeHTTP(w, r)
		}
	})
}
