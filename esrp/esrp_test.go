package esrp

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const minimal = `{"esrp_version":"1.0","request_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2025-01-01T00:00:00Z",
 "caller":{"system":"s"},"target":{"service":"a","operation":"b"},"inputs":[{"name":"t","content_type":"text/plain","data":"x","encoding":"utf-8"}]}`

func TestDecodeErrorsNameTheField(t *testing.T) {
	for doc, want := range map[string]string{
		strings.Replace(minimal, `"system":"s"`, `"system":5`, 1):            "caller.system: expected a string, not a number",
		strings.Replace(minimal, `"data":"x",`, ``, 1):                       "inputs[0].data: missing field",
		strings.Replace(minimal, `"utf-8"`, `"utf8"`, 1):                     `inputs[0].encoding: "utf8" must be one of utf-8, base64, path`,
		strings.Replace(minimal, `"caller":{`, `"caller":{"system":"a",`, 1): "caller.system: duplicate field",
		strings.Replace(minimal, `"target"`, `"Target"`, 1):                  "target: missing field",
		`[]`: "expected an object, not an array",
		strings.Replace(minimal, `"inputs"`, `"mode":{"type":"sync","timeout_ms":5.0},"inputs"`, 1): "mode.timeout_ms: 5.0 must be a whole number",
	} {
		if _, err := DecodeRequest([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in\n%s", err, want, doc)
		}
	}
	var syntax *SyntaxError
	if _, err := DecodeRequest([]byte("{\n\n  x")); !errors.As(err, &syntax) || syntax.Line != 3 {
		t.Errorf("got %v", err)
	}
}

// Unknown members are ignored, even if they are repeated.
func TestUnknownMembers(t *testing.T) {
	doc := strings.Replace(minimal, `{"esrp`, `{"x":1,"x":2,"esrp`, 1)
	if _, err := DecodeRequest([]byte(doc)); err != nil {
		t.Error(err)
	}
}

func TestStrictRequests(t *testing.T) {
	with := func(from, to string) string { return strings.Replace(minimal, from, to, 1) }
	for name, c := range map[string]struct {
		doc  string
		code Code // empty if it is valid
	}{
		"good":             {minimal, ""},
		"right hash":       {with(`"caller"`, `"payload_hash":"7dae8b4679134e4cbbf918cdf8f60341a9637b725a3a85e575abb32821e2c4bf","caller"`), ""},
		"wrong hash":       {with(`"caller"`, `"payload_hash":"`+strings.Repeat("0", 64)+`","caller"`), InvalidInputSemantic},
		"upper-case hash":  {with(`"caller"`, `"payload_hash":"7DAE8B4679134E4CBBF918CDF8F60341A9637B725A3A85E575ABB32821E2C4BF","caller"`), InvalidInputSchema},
		"short hash":       {with(`"caller"`, `"payload_hash":"12","caller"`), InvalidInputSchema},
		"base64":           {with(`"data":"x","encoding":"utf-8"`, `"data":"!","encoding":"base64"`), InvalidInputSchema},
		"path":             {with(`"data":"x","encoding":"utf-8"`, `"data":"/etc/passwd","encoding":"path"`), InvalidInputSemantic},
		"hostile URI":      {with(`"data":"x","encoding":"utf-8"`, `"data":"workspace://n/a%2fb","encoding":"path"`), InvalidInputSemantic},
		"good URI":         {with(`"data":"x","encoding":"utf-8"`, `"data":"workspace://n/x","encoding":"path"`), ""},
		"list of params":   {with(`"inputs"`, `"params":[],"inputs"`), InvalidInputSchema},
		"float":            {with(`"inputs"`, `"params":{"t":0.7},"inputs"`), InvalidInputSchema},
		"no inputs":        {minimal[:strings.Index(minimal, `"inputs"`)] + `"inputs":[]}`, InvalidInputSchema},
		"newer minor":      {with(`"1.0"`, `"1.9"`), ""},
		"leading zero":     {with(`"1.0"`, `"01.0"`), InvalidInputSchema},
		"no minor version": {with(`"1.0"`, `"1"`), InvalidInputSchema},
	} {
		r, err := DecodeRequest([]byte(c.doc))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var wrong *InvalidError
		if err := r.ValidateStrictly(); c.code == "" && err != nil || c.code != "" && (!errors.As(err, &wrong) || wrong.Code != c.code) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

func TestStrictResponses(t *testing.T) {
	id := DerivedUUID("x")
	for _, c := range []struct {
		status Status
		state  JobState
		good   bool
	}{
		{Accepted, JobQueued, true},
		{Accepted, JobStarted, true},
		{Accepted, JobSucceeded, false},
		{Succeeded, JobSucceeded, true},
		{Succeeded, JobFailed, false},
		{Failed, JobFailed, true},
		{Failed, JobCancelled, true},
		{Failed, JobQueued, false},
	} {
		r := Response{Version: Version, RequestID: id, Status: c.status, Job: &Job{id, c.state}}
		if c.status == Failed {
			r.Error = &Error{Code: Unknown, Message: "m"}
		}
		if err := r.ValidateStrictly(); (err == nil) != c.good {
			t.Errorf("%s with a job %s: %v", c.status, c.state, err)
		}
	}
	if err := (Response{Version: Version, Status: Succeeded, Error: &Error{Code: Unknown}}).ValidateStrictly(); err == nil {
		t.Error("a success with an error is accepted")
	}
}

// A duration set with Millis is part of the canonical form. A decoded response with a duration has no
// canonical form (ErrFloat), because the reference stores the duration as a float.
func TestDuration(t *testing.T) {
	timing := &Timing{}
	timing.Millis(1500 * time.Millisecond)
	r := Response{Version: Version, RequestID: UUID{}, Status: Succeeded, Timing: timing}
	c, err := r.Value().Canonical()
	if err != nil || !strings.Contains(string(c), `"duration_ms":1500`) {
		t.Fatalf("%s, %v", c, err)
	}
	back, err := DecodeResponse(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := back.Value().Canonical(); !errors.Is(err, ErrFloat) {
		t.Errorf("got %v", err)
	}
}

// TestJobs tries every transition from every state (docs/contracts/esrp.md, section 9).
func TestJobs(t *testing.T) {
	states := []JobState{JobQueued, JobStarted, JobSucceeded, JobFailed, JobCancelled}
	legal := map[[2]JobState]bool{
		{JobQueued, JobStarted}: true, {JobQueued, JobCancelled}: true,
		{JobStarted, JobSucceeded}: true, {JobStarted, JobFailed}: true, {JobStarted, JobCancelled}: true,
	}
	for _, from := range states {
		for _, to := range states {
			got, err := from.To(to)
			var wrong *TransitionError
			switch {
			case legal[[2]JobState{from, to}] && (err != nil || got != to):
				t.Errorf("%s to %s: %s, %v", from, to, got, err)
			case !legal[[2]JobState{from, to}] && (!errors.As(err, &wrong) || got != from):
				t.Errorf("%s to %s: %s, %v", from, to, got, err)
			}
		}
	}
	events := map[JobEventType]bool{}
	for _, s := range states {
		events[s.Event()] = true
	}
	if len(events) != len(states) {
		t.Errorf("states share events: %v", events)
	}
}

func TestCodes(t *testing.T) {
	for code, want := range map[Code]struct {
		status    int
		retryable bool
	}{
		BackendUnavailable: {502, true}, Timeout: {408, true}, OutOfMemory: {507, true}, InvalidInputSchema: {400, false},
		InvalidInputSemantic: {400, false}, InvalidInputSize: {413, false}, Unknown: {500, false},
	} {
		r := Response{Status: Failed, Error: &Error{Code: code}}
		if got := r.HTTPStatus(); got != want.status || code.Retryable() != want.retryable {
			t.Errorf("%s: %d, %v", code, got, code.Retryable())
		}
	}
	for status, want := range map[Status]int{Succeeded: 200, Accepted: 202, Failed: 500} {
		if got := (Response{Status: status}).HTTPStatus(); got != want {
			t.Errorf("%s: %d", status, got)
		}
	}
}

func TestJobEvents(t *testing.T) {
	const doc = `{"data":{},"event_type":"job_started","job_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2025-01-01T00:00:00.500Z"}`
	e, err := DecodeJobEvent([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := e.Value().Canonical(); err != nil || string(c) != doc {
		t.Errorf("%s, %v", c, err)
	}
	for _, bad := range []string{`{}`, strings.Replace(doc, "job_started", "started", 1), strings.Replace(doc, `"data":{},`, "", 1)} {
		if _, err := DecodeJobEvent([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestDerivedUUID(t *testing.T) {
	a, b := DerivedUUID("chat-1"), DerivedUUID("chat-2")
	if a == b || a != DerivedUUID("chat-1") || a[6]>>4 != 5 {
		t.Errorf("%s, %s", a, b)
	}
}
