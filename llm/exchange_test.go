package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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
		{context.Background(), "/garbage", "", "!p answered with a web page (text/html), which is not its API"},
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
	if got := ask(context.Background(), srv.URL+"?key=the-key", nil); !strings.HasPrefix(got, "!p: connection refused by") || strings.Contains(got, "the-key") {
		t.Errorf("from a server that has ended: %s", got)
	}
}

// Neither a key nor a prompt follows a redirect to another server.
func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
		case "/new":
			fmt.Fprintf(w, `{"said": %q}`, r.Method+" "+r.Header.Get("X-Key"))
		default:
			http.Redirect(w, r, other.URL+"/?key=planted", http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	at := Endpoint{Provider: "p", Client: client, Headers: map[string]string{"X-Key": "the-key"}, Now: time.Now}
	var answer struct{ Said string }
	at.URL = srv.URL + "/moved"
	if err := at.Exchange(t.Context(), "x", &answer); err != nil || answer.Said != "POST the-key" {
		t.Errorf("on the same server: %q, %v", answer.Said, err)
	}
	at.URL = srv.URL + "/away"
	want := "p answered 307 Temporary Redirect: it redirects to " + other.URL + ", but eca sends nothing there: if that is the right server, configure its url"
	for name, err := range map[string]error{
		"question": at.Exchange(t.Context(), "x", &answer),
		"request":  at.Post(t.Context(), []byte("{}"), nil, func(io.Reader) error { return nil }),
	} {
		var typed *Error
		if !errors.As(err, &typed) || typed.Message != want || typed.Retryable() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("the other server was asked %d times", n)
	}
	if client.CheckRedirect != nil {
		t.Error("the client that others use was changed")
	}
}

// The error for an invalid URL says what to do, and does not contain the URL, which may have a
// password. The request is not repeated.
func TestBadURL(t *testing.T) {
	for _, address := range []string{"https://user:planted@a b/", "htp://user:planted@x", "localhost:12", "127.0.0.1:12", "x", "http:///v1"} {
		at := Endpoint{Provider: "p", URL: address, Client: &http.Client{}, Now: time.Now}
		for _, err := range []error{
			at.Post(t.Context(), nil, nil, func(io.Reader) error { return nil }),
			at.Exchange(t.Context(), nil, new(any)),
		} {
			if failed := AsError(err); failed.Retryable() || !strings.Contains(failed.Message, "begin it with http:// or https://") {
				t.Errorf("%s: %s, %s", address, failed.Kind, failed.Message)
			}
			for ; err != nil; err = errors.Unwrap(err) {
				if text := err.Error(); strings.Contains(text, "planted") || !strings.HasPrefix(text, "p: ") {
					t.Errorf("%s", text)
				}
			}
		}
	}
}
