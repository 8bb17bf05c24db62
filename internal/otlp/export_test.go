package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector answers requests in memory and keeps them.
type collector struct {
	mu       sync.Mutex // guards the fields below
	requests []*http.Request
	bodies   [][]byte
	answer   func(n int, path string) (status int, body string, err error) // nil: 200
	header   http.Header
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.bodies = append(c.requests, r), append(c.bodies, body)
	status, answer := http.StatusOK, ""
	if c.answer != nil {
		if status, answer, err = c.answer(len(c.requests), r.URL.Path); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: c.header, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bodies)
}

// spans returns the names of the spans of request n, from 0.
func (c *collector) spans(t *testing.T, n int) (names []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range repeatedBytes(lastBytes(lastBytes(c.bodies[n], 1), 2), 2) {
		names = append(names, string(lastBytes(s, 5)))
	}
	return names
}

// repeatedBytes returns the values of a repeated field of bytes.
func repeatedBytes(b []byte, number protowire.Number) (out [][]byte) {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		b = b[size:]
		if n == number && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			out = append(out, v)
		}
		b = b[protowire.ConsumeFieldValue(n, typ, b):]
	}
	return out
}

// failureLog collects the arguments of the calls of Failed.
type failureLog struct {
	mu   sync.Mutex
	list []string
}

func (o *failureLog) add(signal string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.list = append(o.list, signal+" works")
		return
	}
	o.list = append(o.list, signal+": "+err.Error())
}

func exporter(c *collector, o *failureLog) *Exporter {
	return New(Options{Client: &http.Client{Transport: c}, Scope: Scope{"eca", "1"}, Now: time.Now, Failed: o.add})
}

func parseConfig(t *testing.T, properties map[string]string) Config {
	t.Helper()
	c, errs := Parse(properties, "eca", "1")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return c
}

func localProperties() map[string]string {
	return map[string]string{"otel.exporter.otlp.endpoint": "http://collector:4318/"}
}

func span(name string) Span {
	return Span{Trace: TraceID{1}, ID: SpanID{2}, Parent: SpanID{3}, Name: name, Kind: Client, Start: time.Unix(1, 0), End: time.Unix(2, 0)}
}

func TestSpansAreSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := &collector{}, &failureLog{}
		e := exporter(c, o)
		defer e.Close()
		e.Span(span("nobody asked"))
		e.Use(parseConfig(t, localProperties()))
		e.Span(span("one"))
		time.Sleep(time.Second)
		e.Span(span("two"))
		time.Sleep(3900 * time.Millisecond)
		if c.count() != 0 {
			t.Error("the exporter sent the spans before its delay was over")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if c.count() != 1 || c.requests[0].URL.String() != "http://collector:4318/v1/traces" {
			t.Fatalf("%d requests", c.count())
		}
		if diff := cmp.Diff([]string{"one", "two"}, c.spans(t, 0)); diff != "" {
			t.Error(diff)
		}
		for range batchSize {
			e.Span(span("many"))
		}
		synctest.Wait()
		if c.count() != 2 || len(c.spans(t, 1)) != batchSize {
			t.Errorf("a full batch was not sent at once: %d requests, want 2", c.count())
		}
	})
}

// Spans that could not be sent are sent later, in order, and the user is notified once.
func TestCollectorIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("connection refused")
		c, o := &collector{}, &failureLog{}
		c.answer = func(n int, _ string) (int, string, error) {
			if n < 4 {
				return 0, "", away
			}
			return http.StatusOK, "", nil
		}
		e := exporter(c, o)
		defer e.Close()
		e.Use(parseConfig(t, localProperties()))
		e.Span(span("one"))
		time.Sleep(7 * time.Second)
		e.Span(span("two"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.count() != 4 {
			t.Fatalf("%d requests", c.count())
		}
		if diff := cmp.Diff([]string{"one", "two"}, c.spans(t, 3)); diff != "" {
			t.Error(diff)
		}
		if len(o.list) != 2 || !strings.Contains(o.list[0], "connection refused") || o.list[1] != "traces works" {
			t.Errorf("%q", o.list)
		}
	})
}

// If the collector cannot be reached for long, the exporter drops the oldest spans, so that its
// memory stays bounded.
func TestTooManySpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := &collector{}, &failureLog{}
		c.answer = func(int, string) (int, string, error) { return 0, "", errors.New("away") }
		e := exporter(c, o)
		defer e.Close()
		e.Use(parseConfig(t, localProperties()))
		for range 3 * maxSpans {
			e.Span(span("old"))
			time.Sleep(time.Millisecond)
		}
		e.Span(span("new"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		names := c.spans(t, c.count()-1)
		if len(names) != maxSpans || names[len(names)-1] != "new" {
			t.Errorf("%d spans", len(names))
		}
		if n := c.count(); n > 20 {
			t.Errorf("%d requests in five minutes, want at most 20", n)
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		header  http.Header
		after   time.Duration // of the second request; 0: no second request
		message string
	}{
		"overloaded":       {503, http.Header{}, 6 * time.Second, "the collector answered Service Unavailable: no room"},
		"asks for a pause": {429, http.Header{"Retry-After": {"30"}}, 35 * time.Second, "no room"},
		"bad key":          {401, http.Header{}, 0, "the collector answered Unauthorized: no room"},
		"takes only some":  {200, http.Header{}, 0, "it left out 7 records: no room"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var times []time.Time
				c, o := &collector{header: tc.header}, &failureLog{}
				c.answer = func(n int, _ string) (int, string, error) {
					times = append(times, time.Now())
					if n > 1 {
						return 200, "", nil
					}
					if tc.status == 200 {
						return 200, string(message(nil, 1, func(b []byte) []byte { return text(varint(b, 1, 7), 2, "no room") })), nil
					}
					return tc.status, string(text(nil, 2, "no room")), nil
				}
				e := exporter(c, o)
				defer e.Close()
				start := time.Now()
				e.Use(parseConfig(t, localProperties()))
				e.Span(span("one"))
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(o.list) == 0 || !strings.Contains(o.list[0], tc.message) {
					t.Errorf("%q", o.list)
				}
				switch {
				case tc.after == 0 && c.count() != 1:
					t.Errorf("%d requests", c.count())
				case tc.after != 0 && (c.count() != 2 || times[1].Sub(start) != tc.after):
					t.Errorf("%d requests, at %v", c.count(), times)
				}
			})
		})
	}
}

// point returns the numbers of the first point of the first metric.
func (c *collector) point(t *testing.T, n int) (sum float64, temporality uint64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	data := lastBytes(lastBytes(lastBytes(lastBytes(c.bodies[n], 1), 2), 2), 7)
	bits, _ := protowire.ConsumeFixed64(afterLastTag(lastBytes(data, 1), 4, protowire.Fixed64Type))
	temporality, _ = protowire.ConsumeVarint(afterLastTag(data, 2, protowire.VarintType))
	return math.Float64frombits(bits), temporality
}

func TestMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		preference  string
		second      float64
		temporality uint64
	}{
		"cumulative": {"cumulative", 5, 2},
		"delta":      {"delta", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o := &collector{}, &failureLog{}
				e := exporter(c, o)
				defer e.Close()
				properties := localProperties()
				properties["otel.exporter.otlp.metrics.temporality.preference"] = tc.preference
				e.Use(parseConfig(t, properties))
				used := Instrument{Name: "used", Unit: "{token}"}
				e.Add(used, 1, Attribute{"b", "x"}, Attribute{"a", true})
				e.Add(used, 2, Attribute{"a", true}, Attribute{"b", "x"}) // the same set
				time.Sleep(61 * time.Second)
				e.Add(used, 2, Attribute{"a", true}, Attribute{"b", "x"})
				time.Sleep(time.Hour)
				synctest.Wait()
				if c.count() != 2 {
					t.Fatalf("%d requests, want 2: one for each change", c.count())
				}
				for n, want := range []float64{3, tc.second} {
					if sum, temporality := c.point(t, n); sum != want || temporality != tc.temporality {
						t.Errorf("request %d: %v, temporality %d", n, sum, temporality)
					}
				}
			})
		})
	}
}

// With delta, what could not be sent counts in the next request.
func TestDeltaSurvivesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := &collector{}, &failureLog{}
		c.answer = func(n int, _ string) (int, string, error) {
			if n == 1 {
				return 0, "", errors.New("away")
			}
			return 200, "", nil
		}
		e := exporter(c, o)
		defer e.Close()
		properties := localProperties()
		properties["otel.exporter.otlp.metrics.temporality.preference"] = "delta"
		e.Use(parseConfig(t, properties))
		e.Add(Instrument{Name: "used"}, 1)
		time.Sleep(time.Minute + time.Millisecond)
		e.Add(Instrument{Name: "used"}, 2)
		time.Sleep(time.Hour)
		synctest.Wait()
		if sum, _ := c.point(t, c.count()-1); sum != 3 {
			t.Errorf("%v", sum)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := &collector{}, &failureLog{}
		e := exporter(c, o)
		e.Use(parseConfig(t, localProperties()))
		e.Span(span("last"))
		e.Add(Instrument{Name: "used", Bounds: []float64{1, 2}}, 2)
		e.Close()
		if c.count() != 2 {
			t.Errorf("%d requests", c.count())
		}
	})
	synctest.Test(t, func(t *testing.T) { // a collector that does not answer
		e := New(Options{Now: time.Now, Failed: (&failureLog{}).add, Client: &http.Client{Transport: hanging{}}})
		e.Use(parseConfig(t, localProperties()))
		e.Span(span("last"))
		start := time.Now()
		e.Close()
		if took := time.Since(start); took > closeTime {
			t.Errorf("Close took %v", took)
		}
	})
}

type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

func TestBuckets(t *testing.T) {
	m := newMeter()
	i := Instrument{Name: "h", Bounds: []float64{1, 10}}
	for _, v := range []float64{0.5, 1, 1.5, 10, 11} {
		m.add(i, v, nil, time.Unix(0, 0))
	}
	p := m.sortedMetrics()[0].points[0]
	if diff := cmp.Diff([]uint64{2, 2, 1}, p.buckets); diff != "" || p.count != 5 || p.sum != 24 {
		t.Errorf("%v, %d, %v", diff, p.count, p.sum)
	}
	for n := range 2 * maxPoints {
		m.add(i, 1, []Attribute{{"n", int64(n)}}, time.Unix(0, 0))
	}
	if n := len(m.sortedMetrics()[0].points); n != maxPoints+1 {
		t.Errorf("%d points", n)
	}
}

func TestParse(t *testing.T) {
	c := parseConfig(t, map[string]string{
		"otel.exporter.otlp.endpoint":                        "https://a.example/base",
		"otel.exporter.otlp.metrics.endpoint":                "https://b.example/m",
		"otel.exporter.otlp.headers":                         "authorization=Bearer%20x, tenant = 7",
		"otel.exporter.otlp.traces.headers":                  "key=t",
		"otel.exporter.otlp.timeout":                         "2500",
		"otel.exporter.otlp.compression":                     "gzip",
		"otel.bsp.schedule.delay":                            "200ms",
		"otel.metric.export.interval":                        "10s",
		"otel.service.name":                                  "mine",
		"otel.resource.attributes":                           "service.name=other,deployment.environment=dev",
		"otel.traces.sampler":                                "always_on",
		"otel.instrumentation.genai.capture-message-content": "true",
	})
	want := Config{
		Traces:    Target{"https://a.example/base/v1/traces", map[string]string{"key": "t"}, 2500 * time.Millisecond, true},
		Metrics:   Target{"https://b.example/m", map[string]string{"authorization": "Bearer x", "tenant": "7"}, 2500 * time.Millisecond, true},
		Resource:  []Attribute{{"deployment.environment", "dev"}, {"service.name", "mine"}, {"service.version", "1"}},
		SpanDelay: 200 * time.Millisecond, MetricInterval: 10 * time.Second, Content: true,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if c, errs := Parse(map[string]string{"enabled": "yes"}, "eca", "1"); c.Enabled() || len(errs) != 1 {
		t.Errorf("a property that has no effect: %+v, %v", c, errs)
	}
	if c, errs := Parse(map[string]string{"otel.exporter.otlp.endpont": "http://x"}, "eca", "1"); c.Enabled() || len(errs) != 1 || !strings.Contains(errs[0].Error(), "did you mean otel.exporter.otlp.endpoint?") {
		t.Errorf("a misspelled property: %+v, %v", c, errs)
	}
	if c := parseConfig(t, nil); c.Enabled() {
		t.Error("Enabled is true without any configuration")
	}
	if c := parseConfig(t, map[string]string{"otel.sdk.disabled": "true"}); c.Enabled() {
		t.Error("Enabled is true although otel.sdk.disabled is set")
	}
	if c := parseConfig(t, map[string]string{"otel.traces.exporter": "none", "otel.service.name": "x"}); c.Traces.URL != "" || c.Metrics.URL != "http://localhost:4318/v1/metrics" {
		t.Errorf("%+v", c)
	}
}

func TestWrongProperties(t *testing.T) {
	for name, tc := range map[string]struct{ property, value, cause string }{
		"protocol":   {"otel.exporter.otlp.protocol", "grpc", "use http/protobuf"},
		"exporter":   {"otel.metrics.exporter", "prometheus", "not supported"},
		"endpoint":   {"otel.exporter.otlp.endpoint", "localhost:4318", "is not the address of a collector"},
		"headers":    {"otel.exporter.otlp.headers", "secret", "write name=value"},
		"line break": {"otel.exporter.otlp.headers", "a=b%0d%0ac", "write name=value"},
		"duration":   {"otel.bsp.schedule.delay", "soon", "is not a duration"},
		"negative":   {"otel.metric.export.interval", "-1", "is not a duration"},
		"boolean":    {"otel.sdk.disabled", "perhaps", "must be true or false"},
		"preference": {"otel.exporter.otlp.metrics.temporality.preference", "last", "unknown value"},
		"no otel":    {"endpoint", "http://localhost", "begin with"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := Parse(map[string]string{tc.property: tc.value}, "eca", "1")
			if len(errs) == 0 || errs[0].Property != tc.property || !strings.Contains(errs[0].Error(), tc.cause) || strings.Contains(errs[0].Error(), "secret") {
				t.Errorf("%v", errs)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := &collector{}, &failureLog{}
		e := exporter(c, o)
		properties := localProperties()
		properties["otel.exporter.otlp.compression"] = "gzip"
		e.Use(parseConfig(t, properties))
		e.Span(span("packed"))
		e.Close()
		r, err := gzip.NewReader(bytes.NewReader(c.bodies[0]))
		if err != nil {
			t.Fatal(err)
		}
		if c.bodies[0], err = io.ReadAll(r); err != nil || c.spans(t, 0)[0] != "packed" {
			t.Errorf("%v", err)
		}
	})
}

func FuzzPartialSuccess(f *testing.F) {
	f.Add(message(nil, 1, func(b []byte) []byte { return text(varint(b, 1, 7), 2, "no room") }))
	f.Fuzz(func(_ *testing.T, answer []byte) { partialSuccess(answer) })
}
