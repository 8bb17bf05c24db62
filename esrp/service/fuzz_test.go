package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// openForFuzz starts a service for one run of the fuzzer.
func openForFuzz(f *testing.F) *Service {
	f.Helper()
	ops := newEcho()
	s, err := Open(f.Context(), Options{Dir: f.TempDir(), Token: token, Operations: ops, Log: discardLogger()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	return s
}

// Every request gets a valid response, whose status matches its content.
func FuzzHTTP(f *testing.F) {
	h := openForFuzz(f).Handler(HTTPOptions{Rate: 1e9, Burst: 1e9})
	for _, body := range []string{
		request("echo", "a", asyncMode, ""), request("echo", "a", syncMode, ""), "", "{}", "[]", "null", `{"request_id":1}`, "\xff", strings.Repeat("[", 1000),
		strings.Replace(request("echo", "workspace://artifacts/sha256/x", asyncMode, ""), "utf-8", "path", 1), request("echo", "a", asyncMode, `"params":{"a":1.5},`),
	} {
		f.Add("POST", "/v1/jobs", body, "")
	}
	f.Add("GET", "/v1/jobs/x/events", "", "7")
	f.Add("GET", "/v1/artifacts/artifacts/sha256/%2e%2e/x", "", "")
	f.Add("PUT", "/v1/../v1//jobs", "", "")
	f.Add("GET", "/\x8b", "", "")
	f.Fuzz(func(t *testing.T, method, path, body, last string) {
		q, err := http.NewRequest(method, "http://localhost", strings.NewReader(body))
		if err != nil || strings.Contains(path, "/execute") { // without a worker, these requests wait
			return
		}
		q.URL.Path, q.URL.RawPath = path, ""
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Last-Event-ID", last)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		if w.Header().Get("Content-Type") != "application/json" || strings.HasSuffix(path, "/health") || strings.HasSuffix(path, "/capabilities") {
			if w.Code >= http.StatusBadRequest && w.Body.Len() > 0 {
				t.Errorf("%s %q: %d %q", method, path, w.Code, w.Body)
			}
			return // a redirect, an event stream, or another answer that is not a response
		}
		out, err := esrp.DecodeResponse(w.Body.Bytes())
		if err == nil {
			err = out.ValidateStrictly()
		}
		if err != nil || (out.Status == esrp.Failed) != (w.Code >= http.StatusBadRequest) {
			t.Errorf("%s %q %q: %d %s, %v", method, path, body, w.Code, w.Body, err)
		}
	})
}

// Every message under the subjects of jobs is an event or an error, and every event can be shown.
func FuzzEvent(f *testing.F) {
	id := newID(strings.Repeat("0123456789abcdef", 4))
	f.Add(jobPrefix(id)+kindQueued, `{"request":"`+id+`"}`, []byte("{}"))
	f.Add(jobPrefix(id)+kindFailed, `{"time":1}`, []byte(`{"status":"failed"}`))
	f.Add("esrp.job.x.y.z", "", []byte(nil))
	f.Fuzz(func(t *testing.T, subject, header string, data []byte) {
		e, err := parseEvent(jet.Message{Subject: subject, Header: map[string]string{headerState: header}, Data: data})
		if err != nil {
			return
		}
		if jobPrefix(e.id)+e.kind != subject {
			t.Errorf("%q: %+v", subject, e)
		}
		if _, body, err := e.clientEvent(); err == nil && !json.Valid(body) {
			t.Errorf("%q", body)
		}
		_, _ = e.answer()
	})
}
