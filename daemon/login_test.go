package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A key that could not be checked is stored; the user sees that, why in a sentence, and what
// checks it again.
func TestKeyStoredWithoutACheck(t *testing.T) {
	const again = " `eca doctor` checks it again."
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": {"message": "down for repairs."}}`, http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	d := newDaemon(t, `{"providers": {"my_Fake": {"api": "openai-chat", "url": "`+srv.URL+`", "requiresAuth": true, "models": {"m": {}}}}}`, nil)
	got, err := d.CheckKey(t.Context(), "my_Fake", map[string]string{"api-key": "k"})
	if want := "The key is stored without a check: my_Fake answered 503 Service Unavailable: down for repairs." + again; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
