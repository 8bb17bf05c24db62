package service

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Requests above a limit are refused with the time to wait, and succeed after other requests have
// ended.
func TestLimits(t *testing.T) {
	t.Run("requests at the same time", func(t *testing.T) {
		r := newRig(t, func(_ *Options, h *HTTPOptions) { h.Concurrency = 1 })
		status, out := r.respond("POST", "/v1/jobs", request("hold", "a", asyncMode, ""))
		if status != http.StatusAccepted {
			t.Fatalf("%d %+v", status, out)
		}
		id := out.Job.ID.String()
		stream, leave := r.stream(id, "")
		stream.next() // the stream is being served
		status, doc, header := r.do("GET", "/v1/health", "")
		if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(doc, "1 requests are being served") {
			t.Errorf("%d %s %v", status, doc, header)
		}
		leave()
		for status != http.StatusOK { // until the server notices
			status, _, _ = r.do("GET", "/v1/health", "")
		}
		close(r.ops.hold)
	})
	t.Run("jobs that are not over", func(t *testing.T) {
		r := newRig(t, func(o *Options, _ *HTTPOptions) { o.MaxJobs = 2 })
		var ids []string
		for i := range 2 {
			_, out := r.respond("POST", "/v1/jobs", request("hold", fmt.Sprint(i), asyncMode, ""))
			ids = append(ids, out.Job.ID.String())
		}
		status, out := r.respond("POST", "/v1/jobs", request("hold", "one more", asyncMode, ""))
		if status != http.StatusBadGateway || out.Error.Code != esrp.BackendUnavailable || !out.Error.Retryable || out.Error.RetryAfterMS == nil {
			t.Errorf("%d %+v", status, out.Error)
		}
		// A request for one of the existing jobs is still answered.
		if status, out := r.respond("POST", "/v1/jobs", request("hold", "0", asyncMode, "")); status != http.StatusAccepted || out.Job.ID.String() != ids[0] {
			t.Errorf("%d %+v", status, out)
		}
		close(r.ops.hold)
		r.await(ids[0])
		for deadline := time.Now().Add(time.Minute); ; { // its worker acknowledges it after its end
			status, out = r.respond("POST", "/v1/jobs", request("hold", "one more", asyncMode, ""))
			if status == http.StatusAccepted {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d %+v", status, out.Error)
			}
		}
	})
	t.Run("requests per second", func(t *testing.T) {
		r := newRig(t, func(_ *Options, h *HTTPOptions) { h.Rate, h.Burst = 1e-9, 3 })
		for i := range 3 {
			if status, out := r.respond("POST", "/v1/execute", request("echo", fmt.Sprint(i), syncMode, "")); status != http.StatusOK {
				t.Fatalf("%d %+v", status, out.Error)
			}
		}
		status, _, header := r.do("POST", "/v1/execute", request("echo", "3", syncMode, ""))
		if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || r.ops.count("3") != 0 {
			t.Errorf("%d %v", status, header)
		}
		if status, _, _ := r.do("GET", "/v1/capabilities", ""); status != http.StatusOK { // it starts nothing
			t.Errorf("%d", status)
		}
	})
	t.Run("the time that a caller waits", func(t *testing.T) {
		r := newRig(t, nil)
		body := strings.Replace(request("hold", "a", syncMode, ""), "600000", "86400001", 1)
		if status, out := r.respond("POST", "/v1/execute", body); status != http.StatusBadRequest || !strings.Contains(out.Error.Message, "86400000") {
			t.Errorf("%d %+v", status, out.Error)
		}
		close(r.ops.hold)
	})
}

// Requests with the same key and the same payload are the same request, regardless of their other
// fields. Any difference in the payload makes them different.
func TestKeys(t *testing.T) {
	r := newRig(t, nil)
	execute := func(body string, header ...string) (int, esrp.Response) {
		return r.respond("POST", "/v1/execute", body, header...)
	}
	body := request("echo", "payload", syncMode, "")
	_, first := execute(body)
	for name, other := range map[string]string{
		"another id":     request("echo", "payload", syncMode, ""),
		"another time":   strings.Replace(body, "2026-11-20T10", "2027-11-20T10", 1),
		"another mode":   strings.Replace(body, "600000", "500000", 1),
		"another caller": strings.Replace(body, `"system":"test"`, `"system":"other"`, 1),
		"a scope":        strings.Replace(body, `"mode"`, `"scope_id":"`+uuid.NewString()+`","mode"`, 1),
	} {
		if status, out := execute(other); status != http.StatusOK || out.RequestID != first.RequestID {
			t.Errorf("%s: %d, for %s", name, status, out.RequestID)
		}
	}
	if n := r.ops.count("payload"); n != 1 {
		t.Errorf("run %d times", n)
	}
	for name, other := range map[string]string{
		"params":       strings.Replace(body, `"mode"`, `"params":{"a":1},"mode"`, 1),
		"a variant":    strings.Replace(body, `"operation":"echo"`, `"operation":"echo","variant":"v"`, 1),
		"metadata":     strings.Replace(body, `"encoding"`, `"metadata":{"a":1},"encoding"`, 1),
		"content type": strings.Replace(body, "text/plain", "text/markdown", 1),
	} {
		before := r.ops.count("payload")
		if status, out := execute(other); status != http.StatusOK || r.ops.count("payload") != before+1 {
			t.Errorf("%s: %d, %+v: the request did not run again, so its payload counted as the same", name, status, out.Error)
		}
	}

	// A key in the header is equivalent to a key in the body.
	key := []string{"X-Idempotency-Key", "mine"}
	_, one := execute(request("echo", "with a key", syncMode, ""), key...)
	if status, again := execute(request("echo", "with a key", syncMode, `"idempotency_key":"mine",`)); status != http.StatusOK || again.RequestID != one.RequestID {
		t.Errorf("%d, for %s", status, again.RequestID)
	}
	for name, c := range map[string]struct {
		body   string
		header []string
	}{
		"another payload":      {request("echo", "other", syncMode, ""), key},
		"two keys":             {request("echo", "with a key", syncMode, `"idempotency_key":"yours",`), key},
		"another X-Request-ID": {request("echo", "x", syncMode, ""), []string{"X-Request-ID", uuid.NewString()}},
		"no X-Request-ID":      {request("echo", "x", syncMode, ""), []string{"X-Request-ID", "x"}},
	} {
		if status, out := execute(c.body, c.header...); status != http.StatusBadRequest || out.Error.Code != esrp.InvalidInputSemantic {
			t.Errorf("%s: %d %+v", name, status, out.Error)
		}
	}
}

// clock is a time that tests advance.
type clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Answers are kept for the configured time, and at least as long as their requests could take.
func TestAnswersExpire(t *testing.T) {
	c := &clock{now: time.Now()}
	r := newRig(t, func(o *Options, _ *HTTPOptions) { o.Now, o.Keep = c.time, time.Minute })
	_, short := r.respond("POST", "/v1/execute", request("echo", "short", `{"type":"sync","timeout_ms":60000}`, ""))
	_, long := r.respond("POST", "/v1/execute", request("echo", "long", `{"type":"sync","timeout_ms":3600000}`, ""))
	status := func(out esrp.Response) int {
		status, _, _ := r.do("GET", "/v1/jobs/"+out.Job.ID.String(), "")
		return status
	}
	for _, want := range [][2]int{{200, 200}, {404, 200}, {404, 404}} {
		if got := [2]int{status(short), status(long)}; got != want {
			t.Errorf("at %s: %v, want %v", c.time(), got, want)
		}
		c.add(map[int]time.Duration{200: 2 * time.Minute, 404: 2 * time.Hour}[want[0]])
	}
	if _, again := r.respond("POST", "/v1/execute", request("echo", "short", syncMode, "")); again.RequestID == short.RequestID || r.ops.count("short") != 2 {
		t.Errorf("run %d times", r.ops.count("short"))
	}
}

// Pages of allowed origins may send requests, with the preflight of browsers; other origins may not
// even send a preflight.
func TestPages(t *testing.T) {
	r := newRig(t, func(_ *Options, h *HTTPOptions) {
		h.Address, h.Hosts, h.Origins = "127.0.0.1:1", []string{"esrp.example"}, []string{"https://app.example"}
	})
	const wants = "Access-Control-Request-Method"
	status, doc, header := r.do("OPTIONS", "/v1/jobs", "", "Authorization", "", "Origin", "https://app.example", wants, "POST")
	if status != http.StatusNoContent || doc != "" || header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("%d %s %v", status, doc, header)
	}
	for name, c := range map[string]struct {
		header []string
		status int
	}{
		"an allowed page":           {[]string{"Origin", "https://app.example"}, 200},
		"an allowed host":           {[]string{"Host", "esrp.example:8080"}, 200},
		"without a token":           {[]string{"Origin", "https://app.example", "Authorization", ""}, 401},
		"another page":              {[]string{"Origin", "https://app.example.evil"}, 403},
		"another port":              {[]string{"Origin", "https://app.example:8443"}, 403},
		"another host":              {[]string{"Host", "evil.example"}, 403},
		"a host that ends alike":    {[]string{"Host", "xesrp.example"}, 403},
		"an allowed page elsewhere": {[]string{"Origin", "https://app.example", "Host", "evil.example"}, 403},
	} {
		if status, _, header := r.do("GET", "/v1/health", "", c.header...); status != c.status || status == 403 && header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", name, status, header)
		}
	}
	for _, header := range [][]string{{"Origin", "https://evil.example", wants, "POST"}, {"Origin", "https://app.example"}, {wants, "POST"}} {
		if status, _, _ := r.do("OPTIONS", "/v1/jobs", "", append(header, "Authorization", "")...); status != 401 && status != 403 {
			t.Errorf("%q: %d", header, status)
		}
	}
}

// reader reads a stream of events.
type reader struct {
	t  *testing.T
	in *bufio.Reader
}

// stream starts to read a job's events after a given one; leave disconnects.
func (r *rig) stream(id, after string) (s reader, leave func()) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+"/v1/jobs/"+id+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		q.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return reader{r.t, bufio.NewReader(res.Body)}, func() { _ = res.Body.Close() }
}

// next returns the next event; empty at the end.
func (s reader) next() (id, event string) {
	s.t.Helper()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return "", ""
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(v)
		}
		if line == "\n" && id != "" {
			return id, event
		}
	}
}

// A client that loses a stream while the job runs continues at its position, and gets every event
// exactly once.
func TestStreamResumes(t *testing.T) {
	r := newRig(t, nil)
	_, out := r.respond("POST", "/v1/jobs", request("hold", "a", asyncMode, ""))
	job := out.Job.ID.String()
	s, leave := r.stream(job, "")
	var received []string
	last := ""
	for range 2 { // it was queued and has started
		id, event := s.next()
		received, last = append(received, id+" "+event), id
	}
	leave()
	s, leave = r.stream(job, last)
	defer leave()
	close(r.ops.hold)
	for {
		id, event := s.next()
		if id == "" {
			break
		}
		received = append(received, id+" "+event)
	}
	before := 0
	for _, event := range received {
		var seq int
		if _, err := fmt.Sscan(event, &seq); err != nil || seq <= before {
			t.Errorf("received %q", received)
		}
		before = seq
	}
	if !strings.HasSuffix(received[0], " job_queued") || !strings.HasSuffix(received[1], " job_started") || !strings.HasSuffix(received[len(received)-1], "job_completed") {
		t.Errorf("received %q", received)
	}
	for _, wrong := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		if status, _, _ := r.do("GET", "/v1/jobs/"+job+"/events", "", "Last-Event-ID", wrong); status != http.StatusBadRequest {
			t.Errorf("%q: %d", wrong, status)
		}
	}
	if status, all, _ := r.do("GET", "/v1/jobs/"+job+"/events", "", "Last-Event-ID", "9999999"); status != http.StatusOK || all != "" {
		t.Errorf("after the end: %d %q", status, all)
	}
	if status, _, _ := r.do("GET", "/v1/jobs/"+uuid.NewString()+"/events", ""); status != http.StatusNotFound {
		t.Errorf("of no job: %d", status)
	}
}

// Every request below the size limit reaches its worker: text with many JSON escapes does not
// exceed a message, and neither do the contents of artifacts.
func TestLongRequests(t *testing.T) {
	r := newRig(t, nil)
	text := strings.Repeat("<&>", 1<<20)
	status, out := r.respond("POST", "/v1/execute", request("echo", text, syncMode, ""))
	if status != http.StatusOK || len(out.Artifacts) != 1 || out.Artifacts[0].SizeBytes != uint64(len(text)) {
		t.Fatalf("%d %+v", status, out.Error)
	}
	body := strings.Replace(request("echo", out.Outputs[0].Data, syncMode, ""), `"utf-8"`, `"path"`, 1)
	if status, out := r.respond("POST", "/v1/execute", body); status != http.StatusOK {
		t.Errorf("%d %+v", status, out.Error)
	}
	// An output that is short, but long in the form of a record, becomes an artifact.
	zeros := strings.Repeat(`\u0000`, 100<<10)
	status, out = r.respond("POST", "/v1/execute", request("echo", zeros, syncMode, ""))
	if status != http.StatusOK || len(out.Artifacts) != 1 {
		t.Errorf("%d, %d artifacts, %+v", status, len(out.Artifacts), out.Error)
	}
}
