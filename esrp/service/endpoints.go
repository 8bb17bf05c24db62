package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// artifactTime is the time limit for a client to read an artifact.
const artifactTime = 10 * time.Minute

// accept reads the request in a POST, applies check to it, and accepts it. With an error, q has
// the request's id if that could be read.
func (h *handler) accept(w http.ResponseWriter, r *http.Request, check func(esrp.Request) error) (q esrp.Request, j jobEvent, err error) {
	now := h.s.now()
	start := h.starts.ReserveN(now, 1)
	if wait := start.DelayFrom(now); wait > 0 {
		start.CancelAt(now)
		return q, j, busy(wait, "more than %g requests per second", h.o.Rate)
	}
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return q, j, refuse(http.StatusUnsupportedMediaType, esrp.InvalidInputSchema, "Content-Type must be application/json")
		}
	}
	doc, err := httpguard.ReadBody(w, r, h.o.MaxBody)
	switch {
	case errors.Is(err, httpguard.ErrTooLarge):
		return q, j, refuse(http.StatusRequestEntityTooLarge, esrp.InvalidInputSize, "the request is longer than %d bytes", h.o.MaxBody)
	case err != nil:
		return q, j, refuse(http.StatusBadRequest, esrp.InvalidInputSchema, "cannot read the request: %v", err)
	}
	if q, err = esrp.DecodeRequest(doc); err != nil {
		return esrp.Request{ID: requestIDOf(doc)}, j, asFailure(err)
	}
	if id := r.Header.Get("X-Request-ID"); id != "" {
		if parsed, err := esrp.ParseUUID(id); err != nil || parsed != q.ID {
			return q, j, &Failure{Code: esrp.InvalidInputSemantic, Message: "X-Request-ID is not the request_id"}
		}
	}
	if key := r.Header.Get("X-Idempotency-Key"); key != "" {
		if q.IdempotencyKey != nil && *q.IdempotencyKey != key {
			return q, j, &Failure{Code: esrp.InvalidInputSemantic, Message: "X-Idempotency-Key is not the idempotency_key"}
		}
		q.IdempotencyKey = &key
	}
	if err := check(q); err != nil {
		return q, j, err
	}
	if slices.ContainsFunc(q.Inputs, func(in esrp.Body) bool { return in.Encoding == esrp.Path }) {
		if err := h.s.checkPaths(r.Context(), q); err != nil {
			return q, j, err
		}
	}
	j, err = h.s.accept(r.Context(), q, doc)
	return q, j, err
}

// checkPaths returns an error if an artifact that a request refers to cannot be used.
func (s *Service) checkPaths(ctx context.Context, q esrp.Request) error {
	if err := q.ValidateStrictly(); err != nil {
		return asFailure(err)
	}
	total := int64(0)
	for _, in := range q.Inputs {
		if in.Encoding != esrp.Path {
			continue
		}
		hash, err := artifactHash(in.Data)
		if err != nil {
			return err
		}
		size, err := s.blobs.Size(ctx, hash)
		if err != nil {
			return s.artifactError(in.Data, err)
		}
		total += size
	}
	if total > maxBlob {
		return &Failure{Code: esrp.InvalidInputSize, Message: fmt.Sprintf("the artifacts of the request have %d bytes; at most %d are accepted", total, maxBlob)}
	}
	return nil
}

// requestIDOf returns the id of an invalid request, or the zero UUID.
func requestIDOf(doc []byte) (id esrp.UUID) {
	if v, err := esrp.Parse(doc); err == nil {
		if text, ok := v.Get("request_id"); ok {
			id, _ = esrp.ParseUUID(text.Text)
		}
	}
	return id
}

// execute answers POST /v1/execute: it waits for the end of the job, unless the request is
// asynchronous.
func (h *handler) execute(w http.ResponseWriter, r *http.Request) (id esrp.UUID, err error) {
	q, j, err := h.accept(w, r, func(esrp.Request) error { return nil })
	if err != nil {
		return q.ID, err
	}
	if q.Mode.Type == esrp.Async {
		return id, h.writeJob(w, j)
	}
	limit := time.Duration(q.Mode.TimeoutMS) * time.Millisecond
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	defer context.AfterFunc(h.s.draining, cancel)()
	job := j.id
	j, err = h.s.waitForEnd(ctx, job)
	switch {
	case err == nil:
	case r.Context().Err() != nil:
		return id, nil // the job continues, and a request with the same key gets its answer
	case h.s.draining.Err() != nil:
		err = &Failure{Code: esrp.BackendUnavailable, Message: "the service is shutting down; try again with the same key"}
	case errors.Is(err, context.DeadlineExceeded):
		j, err = h.s.timeOutJob(r.Context(), job)
	}
	var doc []byte
	var response esrp.Response
	if err == nil {
		doc, err = j.answer()
	}
	if err == nil {
		response, err = esrp.DecodeResponse(doc)
	}
	if err == nil {
		writeJSON(w, response.HTTPStatus(), doc)
	}
	return q.ID, err
}

// submit answers POST /v1/jobs.
func (h *handler) submit(w http.ResponseWriter, r *http.Request) (esrp.UUID, error) {
	q, j, err := h.accept(w, r, func(q esrp.Request) error {
		if q.Mode.Type != esrp.Async {
			return &Failure{Code: esrp.InvalidInputSemantic, Message: `jobs are asynchronous: mode.type must be "async"; POST /v1/execute waits`}
		}
		return nil
	})
	if err != nil {
		return q.ID, err
	}
	return esrp.UUID{}, h.writeJob(w, j)
}

// writeJob answers with the state of a job, or with its response if it has ended, as a job with the
// same key may have.
func (h *handler) writeJob(w http.ResponseWriter, j jobEvent) error {
	doc, err := j.answer()
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/jobs/"+j.id)
	status := http.StatusAccepted
	if j.final() {
		status = http.StatusOK
	}
	writeJSON(w, status, doc)
	return nil
}

// jobID returns the id in a path, in canonical form.
func jobID(r *http.Request) (string, error) {
	id, err := esrp.ParseUUID(r.PathValue("id"))
	if err != nil {
		return "", errNoJob
	}
	return id.String(), nil
}

// get answers GET /v1/jobs/{id}.
func (h *handler) get(w http.ResponseWriter, r *http.Request) (esrp.UUID, error) {
	return h.writeJobState(w, r, h.s.job)
}

// cancel answers POST /v1/jobs/{id}/cancel.
func (h *handler) cancel(w http.ResponseWriter, r *http.Request) (esrp.UUID, error) {
	return h.writeJobState(w, r, func(ctx context.Context, id string) (jobEvent, error) {
		return h.s.cancelJob(ctx, id, "cancelled by the caller")
	})
}

// writeJobState answers with the state of the job that do returns.
func (h *handler) writeJobState(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, id string) (jobEvent, error)) (none esrp.UUID, err error) {
	id, err := jobID(r)
	var j jobEvent
	if err == nil {
		j, err = do(r.Context(), id)
	}
	var doc []byte
	if err == nil {
		doc, err = j.answer()
	}
	if err == nil {
		writeJSON(w, http.StatusOK, doc)
	}
	return none, err
}

// artifact answers GET /v1/artifacts/{namespace}/{path}.
func (h *handler) artifact(w http.ResponseWriter, r *http.Request) (none esrp.UUID, err error) {
	var hash string
	var content io.ReadSeekCloser
	uri, err := esrp.ParseURI(esrp.URI{Namespace: r.PathValue("namespace"), Path: r.PathValue("path")}.String())
	if err == nil {
		hash, err = artifactHash(uri.String())
	}
	if err == nil {
		content, err = h.s.blobs.Open(r.Context(), hash)
		err = h.s.artifactError(uri.String(), err)
	}
	if jet.IsOutage(err) {
		return none, err
	}
	if err != nil {
		return none, refuse(http.StatusNotFound, esrp.InvalidInputSemantic, "%v", err)
	}
	defer content.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(artifactTime))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"sha256:`+hash+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
	return none, nil
}

// capabilities answers GET /v1/capabilities.
func (h *handler) capabilities(w http.ResponseWriter, _ *http.Request) (none esrp.UUID, err error) {
	text := func(key, v string) esrp.Member { return esrp.Member{Key: key, Value: esrp.StringValue(v)} }
	list := esrp.Value{Kind: esrp.Array}
	for _, o := range h.s.o.Operations.List() {
		list.Items = append(list.Items, esrp.ObjectValue(
			text("service", o.Service), text("name", o.Name), text("description", o.Description),
			esrp.Member{Key: "repeatable", Value: esrp.BoolValue(o.Repeatable)},
			esrp.Member{Key: "supports_async", Value: esrp.BoolValue(true)}, esrp.Member{Key: "supports_batch", Value: esrp.BoolValue(false)},
		))
	}
	doc, err := esrp.ObjectValue(
		text("service", "eca"), text("version", esrp.Version), text("esrp_version", esrp.Version),
		esrp.Member{Key: "operations", Value: list},
		esrp.Member{Key: "workspace_namespaces", Value: esrp.Value{Kind: esrp.Array, Items: []esrp.Value{esrp.StringValue("artifacts")}}},
		esrp.Member{Key: "rate_limits", Value: esrp.ObjectValue(
			esrp.Member{Key: "requests_per_second", Value: esrp.IntValue(int64(h.o.Rate))},
			esrp.Member{Key: "burst", Value: esrp.IntValue(int64(h.o.Burst))},
			esrp.Member{Key: "concurrent_requests", Value: esrp.IntValue(int64(cap(h.running)))},
			esrp.Member{Key: "request_bytes", Value: esrp.IntValue(h.o.MaxBody)},
		)},
	).Canonical()
	if err == nil {
		writeJSON(w, http.StatusOK, doc)
	}
	return none, err
}

// health answers GET /v1/health.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) (none esrp.UUID, err error) {
	writeJSON(w, http.StatusOK, []byte(`{"mode":"queue","status":"healthy","version":"1.0"}`))
	return none, nil
}
