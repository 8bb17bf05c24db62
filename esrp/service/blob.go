package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

// Large outputs are sent in pieces before the result that refers to them.
const (
	maxInline = 256 << 10 // bytes of outputs in a response, in the form of records; larger ones become artifacts
	pieceSize = 512 << 10 // clusters allow 1 MiB by default, and JSON adds a third
	maxBlob   = 64 << 20
)

// artifactPrefix begins the URIs of artifacts; the content's hash follows.
const artifactPrefix = esrp.Scheme + "artifacts/sha256/"

// blobs are incoming outputs, one per job.
type blobs struct {
	mu      sync.Mutex // guards arrived
	arrived map[string]*blob
}

type blob struct {
	worker string
	data   []byte
}

// drop discards the pieces of a job.
func (b *blobs) drop(job string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.arrived, job)
}

// takePiece takes the next piece of an output; Number is how many bytes came before it. The last
// piece is empty: it completes the output, and the answer's reason is its hash.
func (s *Service) takePiece(ctx context.Context, r report) (answer, error) {
	j, err := s.job(ctx, r.Job)
	if err != nil {
		return answer{}, err
	}
	if j.state.Final() || j.worker != r.Worker {
		return answer{Hear: hearOver, Reason: "another worker has the job, or it is over"}, nil
	}
	s.blobs.mu.Lock()
	defer s.blobs.mu.Unlock()
	if s.blobs.arrived == nil {
		s.blobs.arrived = map[string]*blob{}
	}
	b := s.blobs.arrived[r.Job]
	if b == nil || b.worker != r.Worker || r.Number == 0 && len(r.Piece) > 0 {
		b = &blob{worker: r.Worker}
		s.blobs.arrived[r.Job] = b
	}
	switch {
	case len(r.Piece) > 0 && r.Number+len(r.Piece) == len(b.data):
		return answer{Hear: hearRun}, nil // the answer was lost
	case r.Number != len(b.data):
		return answer{Hear: hearLater, Reason: "a piece is missing"}, nil
	case len(b.data)+len(r.Piece) > maxBlob:
		delete(s.blobs.arrived, r.Job)
		return answer{Hear: hearLater, Reason: fmt.Sprintf("an output is longer than %d bytes", maxBlob)}, nil
	case len(r.Piece) > 0:
		b.data = append(b.data, r.Piece...)
		return answer{Hear: hearRun}, nil
	}
	hash, err := s.o.Artifacts.Put(ctx, b.data)
	if err != nil {
		return answer{Hear: hearLater, Reason: err.Error()}, nil //nolint:nilerr // the worker gets it as the reason
	}
	return answer{Hear: hearRun, Reason: hash}, nil
}

// inputs reads the files that requests refer to by path.
type inputs struct {
	artifacts *artifact.Store
	log       *slog.Logger
}

// inlined returns a request in which the content of files replaces their paths, since workers may
// be on other machines.
func (p inputs) inlined(doc []byte) (json.RawMessage, error) {
	r, err := esrp.DecodeRequest(doc)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, in := range r.Inputs {
		if in.Encoding != esrp.Path {
			continue
		}
		data, err := p.artifact(context.Background(), in.Data)
		if err != nil {
			return nil, err
		}
		r.Inputs[i].Data, r.Inputs[i].Encoding = encode(data)
		changed = true
	}
	if !changed {
		return doc, nil
	}
	r.Context = nil // operations do not use it, and its tags may have no canonical form
	return r.Value().Canonical()
}

// artifact reads the file that a workspace URI refers to. Errors are *Failure.
func (p inputs) artifact(ctx context.Context, uri string) ([]byte, error) {
	hash, ok := strings.CutPrefix(uri, artifactPrefix)
	if !ok {
		return nil, &Failure{Code: esrp.InvalidInputSemantic, Message: "there is only " + artifactPrefix + "HASH, not " + uri}
	}
	data, err := p.artifacts.Get(ctx, strings.ToLower(hash))
	switch {
	case errors.Is(err, artifact.ErrCorrupt):
		p.log.Error("an artifact is not what its name says", "expected", hash, "err", err)
		fallthrough
	case errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrMalformed):
		return nil, &Failure{Code: esrp.InvalidInputSemantic, Message: uri + ": " + err.Error()}
	}
	return data, err
}

// inlineSize is how many bytes data takes in a record. For data above the limit of outputs in a
// response, it only returns some size above the limit.
func inlineSize(data []byte) int {
	if len(data) > maxInline {
		return len(data)
	}
	text, _ := encode(data)
	doc, err := esrp.StringValue(text).Canonical()
	if err != nil {
		return maxInline + 1
	}
	return len(doc)
}

// encode encodes data for a body.
func encode(data []byte) (string, esrp.Encoding) {
	if utf8.Valid(data) {
		return string(data), esrp.UTF8
	}
	return base64.StdEncoding.EncodeToString(data), esrp.Base64
}
