package cluster

import (
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Streams and buckets. Each run has its own stream of results, so that removing the run removes
// them.
const (
	workStream     = "ECP_WORK" // a message for each attempt that was published and has not ended
	planStream     = "ECP_PLAN" // a message for each run that has not ended; the process that receives it is the leader
	resultStreams  = "ECPR_"    // prefix of the stream of a run, before the id of the run
	runsBucket     = "ecp-runs"
	fixturesBucket = "ecp-fixtures"
	blobsBucket    = "ecp-blobs"
)

// Subjects.
const (
	workSubjects = "ecp.work.>"
	planSubjects = "ecp.plan.*"
)

// attemptKey identifies an attempt of a run.
type attemptKey struct {
	Variant string `json:"variant"`
	Case    string `json:"case"`
	Attempt int    `json:"attempt"`
}

func (k attemptKey) String() string {
	return k.Variant + "." + k.Case + "." + strconv.Itoa(k.Attempt)
}

// parseKey parses the key at the end of a subject.
func parseKey(subject string) (attemptKey, error) {
	parts := strings.Split(subject, ".")
	if len(parts) < 3 {
		return attemptKey{}, fmt.Errorf("%q is not the subject of an attempt", subject)
	}
	last := parts[len(parts)-3:]
	n, err := strconv.Atoi(last[2])
	if err != nil {
		return attemptKey{}, fmt.Errorf("%q is not the subject of an attempt: %w", subject, err)
	}
	return attemptKey{last[0], last[1], n}, nil
}

// workSubject returns the subject for an attempt. A subject has at most one message, so an attempt that
// is waiting or running cannot be published again.
func workSubject(run, lane string, k attemptKey) string {
	return "ecp.work." + run + "." + lane + "." + k.String()
}

func runWork(run string) string { return "ecp.work." + run + ".>" }

func laneWork(lane string) string { return "ecp.work.*." + lane + ".>" }

func planSubject(run string) string { return "ecp.plan." + run }

func resultSubject(run string, k attemptKey) string { return "ecp.res." + run + "." + k.String() }

// Keys of the bucket of runs.
func docKey(run string) string   { return run + ".doc" }
func stateKey(run string) string { return run + ".state" }
func statKey(run string) string  { return run + ".stat" }
func laneKey(lane string) string { return "lane." + lane }

// newRunID returns an id of letters and digits that sorts by time.
func newRunID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(id[:])), nil
}

// validToken reports whether a text can be a part of subjects and names.
func validToken(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// laneToken returns the part of a subject for a model and a kind of environment.
func laneToken(model, kind string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(model) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	name := b.String()
	if len(name) > 32 || name != strings.ToLower(model) { // a digest keeps models apart whose names would have the same token
		name = name[:min(len(name), 24)] + "_" + jet.Digest([]byte(model))[:8]
	}
	if name == "" {
		name = "any"
	}
	return name + "-" + kind
}
