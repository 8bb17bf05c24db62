package esrp

import "net/http"

// Code is the kind of failure of an Error (esrp.md 7).
type Code string

// The codes.
const (
	BackendUnavailable   Code = "BACKEND_UNAVAILABLE"
	Timeout              Code = "TIMEOUT"
	OutOfMemory          Code = "OOM" // of memory, disk or quota
	InvalidInputSchema   Code = "INVALID_INPUT_SCHEMA"
	InvalidInputSemantic Code = "INVALID_INPUT_SEMANTIC"
	InvalidInputSize     Code = "INVALID_INPUT_SIZE"
	Unknown              Code = "UNKNOWN"
)

// HTTPStatus returns the HTTP status of a failed call.
func (c Code) HTTPStatus() int {
	switch c {
	case BackendUnavailable:
		return http.StatusBadGateway
	case Timeout:
		return http.StatusRequestTimeout
	case OutOfMemory:
		return http.StatusInsufficientStorage
	case InvalidInputSchema, InvalidInputSemantic:
		return http.StatusBadRequest
	case InvalidInputSize:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}

// Retryable reports whether a retry may succeed. After a TIMEOUT, a call should be retried only if
// repeating it is safe.
func (c Code) Retryable() bool {
	return c == BackendUnavailable || c == Timeout || c == OutOfMemory
}

// HTTPStatus returns the HTTP status of a response.
func (r Response) HTTPStatus() int {
	switch {
	case r.Status == Succeeded:
		return http.StatusOK
	case r.Status == Accepted:
		return http.StatusAccepted
	case r.Error != nil:
		return r.Error.Code.HTTPStatus()
	}
	return http.StatusInternalServerError
}
