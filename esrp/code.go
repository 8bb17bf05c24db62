package esrp

import "net/http"

// Code says what kind of failure an Error is (contract 7).
type Code string

// Codes.
const (
	BackendUnavailable   Code = "BACKEND_UNAVAILABLE"
	Timeout              Code = "TIMEOUT"
	OutOfMemory          Code = "OOM" // of memory, disk or quota
	InvalidInputSchema   Code = "INVALID_INPUT_SCHEMA"
	InvalidInputSemantic Code = "INVALID_INPUT_SEMANTIC"
	InvalidInputSize     Code = "INVALID_INPUT_SIZE"
	Unknown              Code = "UNKNOWN"
)

var codes = []Code{BackendUnavailable, Timeout, OutOfMemory, InvalidInputSchema, InvalidInputSemantic, InvalidInputSize, Unknown}

// HTTPStatus is the status that a failed call is answered with.
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

// Retryable says whether asking again may help. A TIMEOUT only may where asking twice does
// no harm.
func (c Code) Retryable() bool {
	return c == BackendUnavailable || c == Timeout || c == OutOfMemory
}

// HTTPStatus is the status that a response travels with.
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
