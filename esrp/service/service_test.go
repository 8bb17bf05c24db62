package service

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestExecute(t *testing.T) {
	r := newRig(t, nil)
	body := request("echo", "hello", syncMode, "")
	status, out := r.respond("POST", "/v1/execute", body)
	if status != http.StatusOK || out.Status != esrp.Succeeded || out.Outputs[0].Data != "hello" || !strings.Contains(body, out.RequestID.String()) {
		t.Fatalf("%d %+v", status, out)
	}
	// The same request again gets the same answer, even with another id.
	status, again := r.respond("POST", "/v1/execute", request("echo", "hello", syncMode, ""))
	if status != http.StatusOK || again.RequestID != out.RequestID || r.ops.count("hello") != 1 {
		t.Errorf("%d, for %s; run %d times", status, again.RequestID, r.ops.count("hello"))
	}
	// A repeatable request runs again.
	for range 2 {
		r.respond("POST", "/v1/execute", request("look", "there", syncMode, ""))
	}
	if n := r.ops.count("there"); n != 2 {
		t.Errorf("run %d times", n)
	}
}

func TestFailures(t *testing.T) {
	r := newRig(t, func(_ *Options, h *HTTPOptions) { h.MaxBody = 4000 })
	for _, c := range []struct {
		body   string
		status int
		code   esrp.Code
		says   string
	}{
		{"{", 400, esrp.InvalidInputSchema, ""},
		{strings.Replace(request("echo", "a", syncMode, ""), `"1.0"`, `"2.0"`, 1), 400, esrp.InvalidInputSchema, "version"},
		{request("nothing", "a", syncMode, ""), 400, esrp.InvalidInputSemantic, "no such operation"},
		{request("echo", strings.Repeat("a", 4000), syncMode, ""), 413, esrp.InvalidInputSize, "4000"},
		{request("echo", "a", syncMode, `"idempotency_key":"`+strings.Repeat("k", 513)+`",`), 413, esrp.InvalidInputSize, "512"},
		{request("echo", "a", syncMode, `"payload_hash":"`+strings.Repeat("0", 64)+`",`), 400, esrp.InvalidInputSemantic, "hash"},
		{request("echo", "panic", syncMode, ""), 500, esrp.Unknown, "panicked"},
		{request("hold", "a", `{"type":"sync","timeout_ms":1}`, ""), 408, esrp.Timeout, "1 ms"},
		{strings.Replace(request("echo", "/etc/passwd", syncMode, ""), `"encoding":"utf-8"`, `"encoding":"path"`, 1), 400, esrp.InvalidInputSemantic, "outside"},
		{strings.Replace(request("echo", "workspace://artifacts/sha256/"+strings.Repeat("0", 64), syncMode, ""), `"encoding":"utf-8"`, `"encoding":"path"`, 1), 400, esrp.InvalidInputSemantic, "not found"},
	} {
		status, out := r.respond("POST", "/v1/execute", c.body)
		if status != c.status || out.Status != esrp.Failed || out.Error.Code != c.code || !strings.Contains(out.Error.Message, c.says) {
			t.Errorf("%.150s\n%d %+v", c.body, status, out.Error)
		}
	}
}

// A caller without permission gets a response that says so, and nothing runs.
func TestGuard(t *testing.T) {
	r := newRig(t, func(_ *Options, h *HTTPOptions) { h.Address = "127.0.0.1:1"; h.Burst, h.Rate = 1, 1e-9 })
	body := request("echo", "guarded", syncMode, "")
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Authorization", ""}, 401},
		{[]string{"Authorization", "Bearer " + token + "x"}, 401},
		{[]string{"Host", "evil.example"}, 403},
		{[]string{"Host", "10.1.2.3"}, 403},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Content-Type", "text/plain"}, 415}, // uses up the only request that the limit allows
		{nil, 429},
	} {
		if status, out := r.respond("POST", "/v1/execute", body, c.header...); status != c.status || out.Status != esrp.Failed {
			t.Errorf("%q: %d %+v", c.header, status, out)
		}
	}
	if r.ops.count("guarded") != 0 {
		t.Error("a refused request ran")
	}
	for path, want := range map[string]int{"/v1/nothing": 404, "/v1/jobs": 405, "/v1/jobs/x": 404, "/v1/artifacts/etc/passwd": 404} {
		if status, _ := r.respond("GET", path, ""); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A job that exceeded its time limit can be sent again, with a longer one: the timeout is retryable
// and is not kept as the answer. This also holds where the operation reports the end of its context
// as a failure of its own.
func TestTimeoutIsNotKept(t *testing.T) {
	r := newRig(t, nil)
	for _, operation := range []string{"hold", "slow"} {
		for _, short := range []string{`{"type":"sync","timeout_ms":1}`, `{"type":"async","timeout_ms":1}`} {
			status, out := r.respond("POST", "/v1/execute", request(operation, "late", short, ""))
			if out.Status == esrp.Accepted {
				out = r.await(out.Job.ID.String())
			}
			if out.Error == nil || out.Error.Code != esrp.Timeout || !out.Error.Retryable || out.Error.RetryAfterMS == nil {
				t.Errorf("%s, %s: %d %+v", operation, short, status, out.Error)
			}
		}
	}
	close(r.ops.hold)
	for _, operation := range []string{"hold", "slow"} {
		status, out := r.respond("POST", "/v1/execute", request(operation, "late", syncMode, ""))
		if status != http.StatusOK || out.Status != esrp.Succeeded {
			t.Errorf("%s with a longer limit: %d %+v", operation, status, out.Error)
		}
	}
}

func TestJob(t *testing.T) {
	r := newRig(t, nil)
	status, doc, header := r.do("POST", "/v1/jobs", request("hold", "a", asyncMode, ""))
	out, err := esrp.DecodeResponse([]byte(doc))
	if err != nil || status != http.StatusAccepted || out.Status != esrp.Accepted || header.Get("Location") != "/v1/jobs/"+out.Job.ID.String() {
		t.Fatalf("%d %s %v", status, doc, err)
	}
	id := out.Job.ID.String()
	close(r.ops.hold)
	if out = r.await(id); out.Status != esrp.Succeeded || out.Outputs[0].Data != "a" {
		t.Errorf("%+v", out)
	}
	_, all, _ := r.do("GET", "/v1/jobs/"+id+"/events", "")
	frames := strings.Split(strings.TrimSuffix(all, "\n\n"), "\n\n")
	var ids []string
	for _, f := range frames {
		lines := strings.Split(f, "\n")
		e, err := esrp.DecodeJobEvent([]byte(strings.TrimPrefix(lines[2], "data: ")))
		ids = append(ids, strings.TrimPrefix(lines[0], "id: "))
		if err != nil || lines[1] != "event: "+string(e.Type) || e.JobID.String() != id {
			t.Errorf("%q: %v", f, err)
		}
	}
	if !strings.Contains(frames[0], "job_queued") || !strings.Contains(frames[1], "job_started") || !strings.Contains(frames[len(frames)-1], "job_completed") {
		t.Errorf("%s", all)
	}
	// The events after any event are the same.
	for i := range frames {
		_, rest, _ := r.do("GET", "/v1/jobs/"+id+"/events", "", "Last-Event-ID", ids[i])
		want := strings.Join(frames[i+1:], "\n\n")
		if strings.TrimSuffix(rest, "\n\n") != want {
			t.Errorf("after %d: %q", i, rest)
		}
	}
	if status, out := r.respond("POST", "/v1/jobs/"+id+"/cancel", ""); status != 400 || out.Error.Code != esrp.InvalidInputSemantic {
		t.Errorf("cancelled after its end: %d %+v", status, out)
	}
	if status, _ := r.respond("POST", "/v1/jobs", request("echo", "a", syncMode, "")); status != 400 {
		t.Errorf("a job that is waited for: %d", status)
	}
}

func TestCancel(t *testing.T) {
	r := newRig(t, nil)
	body := request("hold", "a", asyncMode, "")
	_, out := r.respond("POST", "/v1/jobs", body)
	id := out.Job.ID.String()
	r.waitUntilStarted(id)
	status, out := r.respond("POST", "/v1/jobs/"+id+"/cancel", "")
	cancelled, _ := out.Error.Details.Get("cancelled")
	if status != 200 || out.Job.State != esrp.JobCancelled || !cancelled.Bool {
		t.Errorf("%d %+v", status, out)
	}
	if _, all, _ := r.do("GET", "/v1/jobs/"+id+"/events", ""); !strings.Contains(all, "job_cancelled") {
		t.Error(all)
	}
	// Its key is free again.
	if status, again := r.respond("POST", "/v1/jobs", body); status != http.StatusAccepted || again.Job.ID == out.Job.ID {
		t.Errorf("%d %+v", status, again)
	}
	close(r.ops.hold)
}

// If many callers send a request with the same key at the same time, it runs once, and all get the
// same answer.
func TestIdempotency(t *testing.T) {
	r := newRig(t, nil)
	var all sync.WaitGroup
	ids := make([]esrp.UUID, 20)
	for i := range ids {
		all.Go(func() {
			_, out := r.respond("POST", "/v1/execute", request("echo", "once", syncMode, `"idempotency_key":"k",`))
			ids[i] = out.RequestID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("%v", ids)
		}
	}
	if n := r.ops.count("once"); n != 1 {
		t.Errorf("run %d times", n)
	}
	status, out := r.respond("POST", "/v1/execute", request("echo", "other", syncMode, `"idempotency_key":"k",`))
	if status != 400 || out.Error.Code != esrp.InvalidInputSemantic || r.ops.count("other") != 0 {
		t.Errorf("%d %+v", status, out)
	}
}

// A large output becomes an artifact, which can be fetched and used as an input.
func TestArtifact(t *testing.T) {
	r := newRig(t, nil)
	status, out := r.respond("POST", "/v1/execute", request("echo", "large x", syncMode, ""))
	if status != 200 || len(out.Artifacts) != 1 || out.Outputs[0].Encoding != esrp.Path {
		t.Fatalf("%d %.500v", status, out)
	}
	a := out.Artifacts[0]
	status, data, header := r.do("GET", "/v1/artifacts/"+strings.TrimPrefix(a.URI, esrp.Scheme), "")
	if status != 200 || data != strings.Repeat("x", 1<<20) || header.Get("ETag") != `"sha256:`+a.SHA256+`"` || esrp.HashBytes([]byte(data)) != a.SHA256 {
		t.Errorf("%d, %d bytes, %v", status, len(data), header)
	}
	body := strings.Replace(request("echo", a.URI, syncMode, ""), `"encoding":"utf-8"`, `"encoding":"path"`, 1)
	if status, again := r.respond("POST", "/v1/execute", body); status != 200 || len(again.Artifacts) != 1 || again.Artifacts[0].SHA256 != a.SHA256 {
		t.Errorf("%d %.500v", status, again)
	}
}

// Accepted jobs continue when the service is opened again, and answers are kept.
func TestReopen(t *testing.T) {
	dir, ops := t.TempDir(), newEcho()
	o := options(dir, ops)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another service") {
		t.Errorf("opened twice: %v", err)
	}
	doc := request("echo", "later", asyncMode, "")
	open := o
	open.Dir, open.Token = t.TempDir(), ""
	if s, err := Open(t.Context(), open); err == nil {
		s.Close()
		t.Error("Open started a service without a token")
	}
	j, err := accept(t, s, doc) // there is no worker
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 2 {
		if s, err = Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Log: o.Log})
		if err != nil {
			t.Fatal(err)
		}
		if j, err = s.waitForEnd(t.Context(), j.id); err != nil || j.jobState() != esrp.JobSucceeded {
			t.Errorf("%s, %v", j.jobState(), err)
		}
		w.Close()
		s.Close()
	}
	if n := ops.count("later"); n != 1 {
		t.Errorf("run %d times", n)
	}
}

// The server disconnects a client that stops in the middle of a request. It refuses requests above
// the limit of concurrent ones, and those that run still succeed.
func TestCrowd(t *testing.T) {
	r := newRig(t, func(_ *Options, h *HTTPOptions) { h.Concurrency = 2 })
	for want, given := range map[string]string{"400": token, "401": "another"} {
		text := "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + given + "\r\nContent-Length: 1000\r\n\r\n{"
		if answer, _ := testkit.Stalled(t, &http.Server{Handler: r.http.Config.Handler}, text); answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 "+want) {
			t.Errorf("%s: %q", want, answer) // a client that reads no answer in time gets no answer
		}
	}
	var crowd sync.WaitGroup
	for _, data := range []string{"one", "two"} {
		crowd.Go(func() {
			if status, out := r.respond("POST", "/v1/execute", request("hold", data, syncMode, "")); status != http.StatusOK || out.Status != esrp.Succeeded {
				t.Errorf("%s: %d %+v", data, status, out)
			}
		})
		for r.ops.count(data) == 0 {
			runtime.Gosched()
		}
	}
	status, out := r.respond("GET", "/v1/capabilities", "")
	if status != http.StatusTooManyRequests || out.Status != esrp.Failed {
		t.Errorf("a third request: %d %+v", status, out)
	}
	close(r.ops.hold)
	crowd.Wait()
}
