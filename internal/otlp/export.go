// Package otlp sends traces and metrics to a collector of OpenTelemetry, by OTLP over HTTP with
// protobuf.
//
// An Exporter collects spans and measurements in memory and sends them in the background, with one
// request per signal at a time. Recording never blocks. If a collector cannot be reached, spans are
// lost but memory is bounded: at most 2048 spans wait, the oldest are dropped first, and metrics
// are sums that the next request includes. Requests that fail temporarily are repeated with the
// next batch, after a pause that doubles up to a minute.
//
// Without a configuration, recording costs one atomic load, and there are no goroutines. An idle
// exporter has no timer.
//
// The package has its own encoder, on the wire format of Go's protobuf module: the SDK of
// OpenTelemetry with its exporters would add a tenth to the size of eca.
//
// The entry points are Parse, New, Exporter.Use, Exporter.Span and Exporter.Add.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the dependencies of an Exporter.
type Options struct {
	Client *http.Client
	Scope  Scope
	Now    func() time.Time
	// Failed is called with an error when a signal cannot be sent, and with nil when it can be sent
	// again. It is not called again while a signal keeps failing. It must not block.
	Failed func(signal string, err error)
}

// Exporter sends spans and measurements. It is safe for concurrent use.
type Exporter struct {
	o    Options
	conf atomic.Pointer[Config] // nil exports nothing
	wake chan struct{}          // capacity 1; a value means that data became due earlier than before
	ctx  context.Context        // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	started    bool
	spans      queue
	meter      *meter
	changed    bool      // the meter has unsent values
	metricsDue time.Time // when metrics are due, if changed
	pauses     map[string]*pause
}

// queue is the queue of unsent spans.
type queue struct {
	list []Span
	due  time.Time // when they are due, if there are any
}

// pause is the delay of a signal after failures.
type pause struct {
	length time.Duration
	until  time.Time
}

const (
	maxSpans   = 2048
	batchSize  = 512 // this many waiting spans are sent immediately
	firstPause = time.Second
	maxPause   = time.Minute
	closeTime  = time.Second // limit of Close
	maxAnswer  = 64 << 10
)

// New returns an exporter that does nothing until Use. The caller must call Close.
func New(o Options) *Exporter {
	e := &Exporter{o: o, wake: make(chan struct{}, 1), meter: newMeter(), pauses: map[string]*pause{}}
	e.ctx, e.end = context.WithCancel(context.Background())
	return e
}

// Use applies a configuration. Queued spans are sent to its target.
func (e *Exporter) Use(c Config) {
	if !c.Enabled() {
		e.conf.Store(nil)
		return
	}
	if old := e.conf.Swap(&c); old != nil && reflect.DeepEqual(*old, c) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.pauses)
	if !e.started && e.ctx.Err() == nil {
		e.started = true
		e.work.Go(e.run)
	}
	e.wakeRun()
}

// Config returns the configuration in effect; ok is false if nothing is exported.
func (e *Exporter) Config() (c Config, ok bool) {
	p := e.conf.Load()
	if p == nil {
		return Config{}, false
	}
	return *p, true
}

// Span records a completed span.
func (e *Exporter) Span(s Span) {
	c := e.conf.Load()
	if c == nil || c.Traces.URL == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.spans.list) == 0 {
		e.spans.due = e.o.Now().Add(c.SpanDelay)
		e.wakeRun()
	}
	if len(e.spans.list) >= maxSpans {
		e.spans.list = append(e.spans.list[:0], e.spans.list[1:]...)
	}
	e.spans.list = append(e.spans.list, s)
	if len(e.spans.list) == batchSize {
		e.spans.due = e.o.Now()
		e.wakeRun()
	}
}

// Add adds a value to an instrument.
func (e *Exporter) Add(i Instrument, value float64, list ...Attribute) {
	c := e.conf.Load()
	if c == nil || c.Metrics.URL == "" {
		return
	}
	now := e.o.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.meter.add(i, value, list, now)
	if !e.changed {
		e.changed, e.metricsDue = true, now.Add(c.MetricInterval)
		e.wakeRun()
	}
}

// wakeRun makes run check again which signals are due.
func (e *Exporter) wakeRun() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close sends the recorded data, for up to a second.
func (e *Exporter) Close() {
	e.end()
	e.work.Wait()
	if c := e.conf.Swap(nil); c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		var signals sync.WaitGroup
		signals.Go(func() { e.sendSpans(ctx, c) })
		signals.Go(func() { e.sendMetrics(ctx, c) })
		signals.Wait()
	}
}

// run sends data when it is due, until Close.
func (e *Exporter) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if c := e.conf.Load(); c != nil {
			if e.isDue("traces") {
				e.sendSpans(e.ctx, c)
			}
			if e.isDue("metrics") {
				e.sendMetrics(e.ctx, c)
			}
			if wait, ok := e.untilNext(); ok {
				timer.Reset(wait)
			}
		}
		select {
		case <-e.ctx.Done():
			return
		case <-e.wake:
		case <-timer.C:
		}
	}
}

// dueAt returns when a signal is sent next; ok is false if it has nothing to send.
func (e *Exporter) dueAt(signal string) (at time.Time, ok bool) {
	switch {
	case signal == "traces" && len(e.spans.list) > 0:
		at = e.spans.due
	case signal == "metrics" && e.changed:
		at = e.metricsDue
	default:
		return at, false
	}
	if p := e.pauses[signal]; p != nil && p.until.After(at) {
		at = p.until
	}
	return at, true
}

func (e *Exporter) isDue(signal string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.dueAt(signal)
	return ok && !e.o.Now().Before(at)
}

// untilNext returns the time until the next signal is due; ok is false if no data waits.
func (e *Exporter) untilNext() (wait time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, signal := range []string{"traces", "metrics"} {
		at, pending := e.dueAt(signal)
		if !pending {
			continue
		}
		if d := max(at.Sub(e.o.Now()), time.Millisecond); !ok || d < wait {
			wait, ok = d, true
		}
	}
	return wait, ok
}

// sendSpans sends the queued spans. It keeps them if a retry may succeed.
func (e *Exporter) sendSpans(ctx context.Context, c *Config) {
	e.mu.Lock()
	list := e.spans.list
	e.spans = queue{}
	e.mu.Unlock()
	if len(list) == 0 || c.Traces.URL == "" {
		return
	}
	err := e.post(ctx, c.Traces, encodeSpans(c.Resource, e.o.Scope, list))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recordResult("traces", err) {
		list = append(list, e.spans.list...)
		e.spans = queue{list: list[max(0, len(list)-maxSpans):], due: e.o.Now()}
	}
}

// sendMetrics sends all metrics. With delta, unsent values are added to later ones.
func (e *Exporter) sendMetrics(ctx context.Context, c *Config) {
	now := e.o.Now()
	temporality := uint64(2)
	if c.Delta {
		temporality = 1
	}
	e.mu.Lock()
	if !e.changed || c.Metrics.URL == "" {
		e.mu.Unlock()
		return
	}
	e.changed = false
	body := encodeMetrics(c.Resource, e.o.Scope, e.meter.sortedMetrics(), now, temporality)
	sent := e.meter
	if c.Delta {
		e.meter = newMeter()
	}
	e.mu.Unlock()
	err := e.post(ctx, c.Metrics, body)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recordResult("metrics", err) {
		if c.Delta {
			sent.merge(e.meter)
			e.meter = sent
		}
		e.changed, e.metricsDue = true, now
	}
}

// recordResult records the result of sending a signal, and reports whether to retry.
func (e *Exporter) recordResult(signal string, err error) (retry bool) {
	p := e.pauses[signal]
	switch {
	case err == nil && p != nil:
		delete(e.pauses, signal)
		e.o.Failed(signal, nil)
		return false
	case err == nil:
		return false
	case p == nil:
		p = &pause{length: firstPause}
		e.pauses[signal] = p
		if !errors.Is(err, context.Canceled) { // Close sends it again
			e.o.Failed(signal, err)
		}
	default:
		p.length = min(2*p.length, maxPause)
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		p.until = e.o.Now().Add(max(p.length, refused.after))
		return refused.temporary
	}
	p.until = e.o.Now().Add(p.length)
	return true
}

// refusedError is an unsuccessful answer.
type refusedError struct {
	status    string
	detail    string
	temporary bool          // a retry may succeed
	after     time.Duration // earliest time of a retry; 0 if the answer has none
}

func (e *refusedError) Error() string {
	if e.detail == "" {
		return "the collector answered " + e.status
	}
	return fmt.Sprintf("the collector answered %s: %s", e.status, e.detail)
}

// post sends a request and reads the answer.
func (e *Exporter) post(ctx context.Context, t Target, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	if t.Gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range t.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if t.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.o.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return refusal(resp, answer)
	}
	if n, why := partialSuccess(answer); n > 0 {
		return &refusedError{status: resp.Status, detail: fmt.Sprintf("it left out %d records: %.200s", n, why)}
	}
	return nil
}

// refusal describes an unsuccessful answer.
func refusal(resp *http.Response, answer []byte) error {
	out := &refusedError{status: resp.Status, detail: string(lastBytes(answer, 2))} // google.rpc.Status.message
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		out.after = min(time.Duration(seconds)*time.Second, maxDuration)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		out.temporary = true
	}
	return out
}
