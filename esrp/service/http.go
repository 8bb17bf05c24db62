package service

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// HTTPOptions are the access rules and limits for HTTP.
type HTTPOptions struct {
	httpguard.Options // Token is replaced by that of the service

	MaxBody     int64   // bytes of a request; default 4 MiB
	Rate        float64 // average number per second of requests that start jobs; default 200
	Burst       int     // how many of those may arrive at the same time; default 1,000
	Concurrency int     // concurrent requests, including streams; default 1,024
}

// Handler serves HTTP (esrp.md 8).
func (s *Service) Handler(o HTTPOptions) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.Rate <= 0 {
		o.Rate = 200
	}
	o.Burst = orDefault(o.Burst, 1000)
	h := &handler{s: s, o: o, running: make(chan struct{}, orDefault(o.Concurrency, 1024)), starts: rate.NewLimiter(rate.Limit(o.Rate), o.Burst)}
	o.Token = s.o.Token
	h.guard = httpguard.New(o.Options, httpguard.Pages{
		Methods: "GET, POST", Headers: "Authorization, Content-Type, Last-Event-ID, X-Idempotency-Key, X-Request-ID", Expose: "ETag, Location, Retry-After",
	})
	h.mux = http.NewServeMux()
	for pattern, answer := range map[string]endpoint{
		"POST /v1/execute":                        h.execute,
		"POST /v1/jobs":                           h.submit,
		"GET /v1/jobs/{id}":                       h.get,
		"GET /v1/jobs/{id}/events":                h.events,
		"POST /v1/jobs/{id}/cancel":               h.cancel,
		"GET /v1/artifacts/{namespace}/{path...}": h.artifact,
		"GET /v1/capabilities":                    h.capabilities,
		"GET /v1/health":                          h.health,
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if id, err := answer(w, r); err != nil {
				h.fail(w, id, err)
			}
		})
	}
	return h
}

// endpoint answers a request, or returns the error to answer, with the id of the ESRP request if it is
// known.
type endpoint func(w http.ResponseWriter, r *http.Request) (esrp.UUID, error)

type handler struct {
	s       *Service
	o       HTTPOptions
	mux     *http.ServeMux
	guard   *httpguard.Guard
	running chan struct{}
	starts  *rate.Limiter
}

// refusal is a failure with an HTTP status other than that of its code.
type refusal struct {
	Failure
	status int
	after  time.Duration // for the header Retry-After; 0 sends none
}

func refuse(status int, code esrp.Code, format string, args ...any) *refusal {
	return &refusal{Failure: Failure{Code: code, Message: fmt.Sprintf(format, args...), Final: true}, status: status}
}

func busy(after time.Duration, format string, args ...any) *refusal {
	r := refuse(http.StatusTooManyRequests, esrp.BackendUnavailable, format, args...)
	r.Final, r.after = false, max(after, time.Second)
	return r
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	done, refused := h.guard.Admit(w, r)
	if !done && refused == nil {
		refused = h.guard.Authorize(w, r)
	}
	switch {
	case refused != nil:
		h.refuse(w, refuse(refused.Status, esrp.InvalidInputSemantic, "%s", refused.Message))
		return
	case done:
		return
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	default:
		h.refuse(w, busy(retryAfter, "%d requests are being served", cap(h.running)))
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		probe := &statusOnly{header: w.Header()}
		h.mux.ServeHTTP(probe, r) // the mux also sets the allowed methods
		if probe.status < http.StatusBadRequest {
			probe.status = http.StatusNotFound
		}
		h.refuse(w, refuse(probe.status, esrp.InvalidInputSemantic, "there is no endpoint %s %s", r.Method, r.URL.Path))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// statusOnly is a ResponseWriter that only records the status.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }

// refuse answers with a failure without a request id.
func (h *handler) refuse(w http.ResponseWriter, r *refusal) {
	if r.after > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(r.after.Seconds()), 'f', 0, 64))
	}
	h.write(w, r.status, failedResponse(&r.Failure))
}

// fail answers with an error, including the request's id if it is known.
func (h *handler) fail(w http.ResponseWriter, id esrp.UUID, err error) {
	var refused *refusal
	if errors.As(err, &refused) {
		h.refuse(w, refused)
		return
	}
	var f *Failure
	var transition *esrp.TransitionError
	out := esrp.Response{}
	status := 0
	switch {
	case errors.As(err, &f):
		out = failedResponse(f)
	case errors.As(err, &transition):
		out = failedResponse(&Failure{Code: esrp.InvalidInputSemantic, Message: err.Error()})
	case errors.Is(err, errNoJob):
		status, out = http.StatusNotFound, failedResponse(&Failure{Code: esrp.InvalidInputSemantic, Message: err.Error()})
	default:
		h.s.log.Warn("cannot answer a request", "err", err)
		out = failedResponse(&Failure{Code: esrp.Unknown, Message: "internal error; see the log of the service"})
	}
	out.RequestID = id
	if status == 0 {
		status = out.HTTPStatus()
	}
	h.write(w, status, out)
}

func (h *handler) write(w http.ResponseWriter, status int, r esrp.Response) {
	doc, err := r.Value().Canonical()
	if err != nil {
		h.s.log.Error("cannot write a response", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeJSON(w, status, doc)
}

func writeJSON(w http.ResponseWriter, status int, doc []byte) {
	const answerTime = 90 * time.Second                                            // long, because the server first reads the whole body of a refused request
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // test servers may not support it
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(doc) // a client that misses the answer can request it again
}
