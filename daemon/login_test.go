package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// eca stores a key that it could not check. The message says so, gives the reason, and names the command
// that checks the key again.
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
