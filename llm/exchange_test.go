package llm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestExchange(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			fmt.Fprintf(w, `{"said": %q}`, r.Method+" "+r.Header.Get("X-Key")+" "+string(body))
		case "/denied":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`[{"error": {"message": "` + r.Header.Get("X-Key") + ` is wrong"}}]`))
		case "/garbage":
			_, _ = w.Write([]byte("<html>"))
		case "/hang":
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(ctx context.Context, url string, question any) string {
		at := Endpoint{Provider: "p", URL: url, Client: client, Headers: map[string]string{"X-Key": "the-key"}, Now: time.Now}
		var answer struct{ Said string }
		if err := at.Exchange(ctx, question, &answer); err != nil {
			return "!" + err.Error()
		}
		return answer.Said
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx       context.Context
		path, say string
		want      string
	}{
		{context.Background(), "/echo", "", "GET the-key "},
		{context.Background(), "/echo", "x", `POST the-key "x"`},
		{context.Background(), "/denied?key=the-key", "", "!p answered 403 Forbidden: [REDACTED] is wrong"},
		{context.Background(), "/garbage", "", "!p: the answer can not be read: invalid character"},
		{cancelled, "/hang?key=the-key", "", "!context canceled"},
	} {
		var question any
		if c.say != "" {
			question = c.say
		}
		if got := ask(c.ctx, srv.URL+c.path, question); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.path, got)
		}
	}
	srv.Close()
	if got := ask(context.Background(), srv.URL+"?key=the-key", nil); !strings.HasPrefix(got, "!p: no connection to") || strings.Contains(got, "the-key") {
		t.Errorf("nobody there: %s", got)
	}
}
