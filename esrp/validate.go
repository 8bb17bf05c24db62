package esrp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// InvalidError is the error for a record that was decoded but must not be executed.
type InvalidError struct {
	Code   Code // InvalidInputSchema or InvalidInputSemantic
	Reason string
}

func (e *InvalidError) Error() string { return e.Reason }

func schemaError(format string, args ...any) error {
	return &InvalidError{InvalidInputSchema, fmt.Sprintf(format, args...)}
}

func semanticError(format string, args ...any) error {
	return &InvalidError{InvalidInputSemantic, fmt.Sprintf(format, args...)}
}

// Validate checks a request as the reference does (esrp.md 3), and returns the first error, which is
// an *InvalidError.
func (r Request) Validate() error {
	if err := checkVersion(r.Version); err != nil {
		return err
	}
	for _, must := range []struct{ name, value string }{
		{"caller.system", r.Caller.System}, {"target.service", r.Target.Service}, {"target.operation", r.Target.Operation},
	} {
		if must.value == "" {
			return schemaError("empty %s", must.name)
		}
	}
	if len(r.Inputs) == 0 {
		return schemaError("empty inputs: there must be at least one")
	}
	for i, in := range r.Inputs {
		if err := in.validate(i); err != nil {
			return err
		}
	}
	return nil
}

func (b Body) validate(i int) error {
	switch {
	case b.Name == "":
		return schemaError("empty input name at index %d", i)
	case b.ContentType == "":
		return schemaError("empty content type for input '%s'", b.Name)
	case b.Encoding != Path:
		return nil
	case strings.HasPrefix(b.Data, Scheme):
		if reason := checkRecordURI(b.Data); reason != "" {
			return schemaError("invalid workspace URI of input '%s': %s", b.Name, reason)
		}
	case b.Data == "":
		return schemaError("empty data for input '%s'", b.Name)
	}
	return nil
}

// ValidateStrictly is Validate plus the checks for executing untrusted requests (esrp.md 3): it
// refuses a wrong payload hash, data that cannot be decoded, paths that are not workspace URIs,
// parameters that are not objects, and numbers that cannot be hashed.
func (r Request) ValidateStrictly() error {
	if err := r.Validate(); err != nil {
		return err
	}
	if k := r.Params.Kind; k != Null && k != Object {
		return schemaError("params: expected an object, not %s", k)
	}
	for _, in := range r.Inputs {
		if err := in.validateStrictly(); err != nil {
			return err
		}
	}
	if path, ok := r.Value().Duplicate(); ok {
		return schemaError("%s: duplicate field", path)
	}
	hash, err := r.HashPayload()
	switch {
	case errors.Is(err, ErrFloat):
		return schemaError("cannot hash the payload: %v", err)
	case err != nil:
		return err
	case r.PayloadHash == nil:
		return nil
	case !isSHA256(*r.PayloadHash) || strings.ToLower(*r.PayloadHash) != *r.PayloadHash:
		return schemaError("payload_hash is not a SHA-256 in lower-case hexadecimal digits")
	case *r.PayloadHash != hash:
		return semanticError("payload_hash does not match: the payload has %s", hash)
	}
	return nil
}

func (b Body) validateStrictly() error {
	switch b.Encoding {
	case Base64:
		if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil {
			return schemaError("data of input '%s' is not base64: %v", b.Name, err)
		}
	case Path:
		if !strings.HasPrefix(b.Data, Scheme) {
			return semanticError("input '%s' names a file outside of the workspace", b.Name)
		}
		if _, err := ParseURI(b.Data); err != nil {
			return semanticError("input '%s': %v", b.Name, err)
		}
	}
	return nil
}

// Validate checks a response, except its outputs, as the reference does (esrp.md 3). The error is an
// *InvalidError.
func (r Response) Validate() error {
	if err := checkVersion(r.Version); err != nil {
		return err
	}
	switch {
	case r.Status == Failed && r.Error == nil:
		return schemaError("missing error: a failed response must have one")
	case r.Status == Accepted && r.Job == nil:
		return schemaError("missing job: an accepted response must have one")
	}
	for _, a := range r.Artifacts {
		if strings.HasPrefix(a.URI, Scheme) {
			if reason := checkRecordURI(a.URI); reason != "" {
				return schemaError("invalid artifact URI %q: %s", a.URI, reason)
			}
		}
		if !isSHA256(a.SHA256) {
			return schemaError("invalid SHA256 of artifact %s", a.ID)
		}
		if a.SizeBytes == 0 {
			return schemaError("artifact size zero: %s", a.ID)
		}
	}
	return nil
}

// ValidateStrictly is Validate plus a check that the state of a job matches the status.
func (r Response) ValidateStrictly() error {
	if err := r.Validate(); err != nil {
		return err
	}
	switch {
	case r.Status == Succeeded && r.Error != nil:
		return semanticError("a response that succeeded has an error")
	case r.Job == nil:
		return nil
	case r.Status == Accepted && r.Job.State.Final(),
		r.Status == Succeeded && r.Job.State != JobSucceeded,
		r.Status == Failed && r.Job.State != JobFailed && r.Job.State != JobCancelled:
		return semanticError("the response says %s, its job %s", r.Status, r.Job.State)
	}
	return nil
}

// checkVersion requires major.minor with major 1 (esrp.md 2).
func checkVersion(v string) error {
	parts := strings.Split(v, ".")
	if len(parts) != 2 {
		return schemaError("invalid version format: %q is not major.minor", v)
	}
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return schemaError("invalid version format: %q is not a number from 0 to 255", part)
		}
	}
	if parts[0] != "1" {
		return schemaError("version mismatch: got %s, expected %s", v, Version)
	}
	return nil
}

func isSHA256(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 2*sha256.Size
}
