package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// resuming puts the id of the chat that a call's subagent has in place of RESUME in the
// answers of a provider: a cassette can not know it.
func resuming(parent, call string) func(http.Handler) http.Handler {
	sum := sha256.Sum256([]byte(parent + "\n" + call))
	id := []byte("subagent-" + hex.EncodeToString(sum[:12]))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			next.ServeHTTP(replacing{w, id}, req)
		})
	}
}

type replacing struct {
	http.ResponseWriter
	id []byte
}

func (r replacing) Write(b []byte) (int, error) {
	if _, err := r.ResponseWriter.Write(bytes.ReplaceAll(b, []byte("RESUME"), r.id)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (r replacing) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
