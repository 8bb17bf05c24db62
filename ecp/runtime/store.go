package runtime

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Key identifies a case, its variant, and everything that determines its result, except the agent's
// self-description.
type Key = [16]byte

// Store keeps the attempts and results of a run, so that another process can continue it, or another
// run can reuse them. Its methods are called from several goroutines. Attempts count from 1; agent is
// the hash of the agent's self-description.
type Store interface {
	// Attempt adds an attempt. One that was stopped is not found later, but its cost counts.
	Attempt(key Key, n int, agent int64, a report.Attempt, stopped bool) error
	// Result adds a result, whose attempts were added before. index is that of its case in the plan.
	Result(key Key, index int, s *report.Scenario) error

	// Earlier reports whether there are attempts of an earlier process. If so, Keep is called for each
	// case of the plan that Has finds, and then Matched, before anything is added.
	Earlier() bool
	// Has returns the key under which an earlier process added attempts of a case.
	Has(keys []Key) (Key, bool)
	// Keep keeps the earlier attempts of a planned case, and reports whether its result is complete.
	Keep(p report.Planned) (complete bool, err error)
	// Matched removes what was not kept. It fails, and changes nothing, if the store may not remove it.
	// planned is the number of cases in the plan.
	Matched(planned int) error
	// Find reports whether an earlier attempt was kept, and can be reused.
	Find(key Key, n int) bool
	// Load returns an attempt that Find found.
	Load(key Key, n int) (report.Attempt, error)
	// Spent returns what all attempts used. unpriced means that some reported no cost.
	Spent() (tokens int64, cost float64, unpriced bool)

	// Sum sets the fields of a report that are derived from the results of the selected cases;
	// planned is the number of these cases.
	Sum(r *report.Report, planned int) error
}

// keys returns the key of a case under its ID and under each alias.
func (c Case) keys() []Key {
	keys := []Key{c.key(c.ID)}
	for _, id := range c.Aliases {
		keys = append(keys, c.key(id))
	}
	return keys
}

// key returns the key of a case under one of its IDs.
func (c Case) key(id string) (key Key) {
	sum := sha256.Sum256([]byte(id + "\x00" + c.VariantKey + "\x00" + c.digest))
	copy(key[:], sum[:])
	return key
}

// agentHash identifies what an agent said about itself. It is 0 for nil.
func agentHash(a *report.Agent) int64 {
	if a == nil {
		return 0
	}
	sum := sha256.Sum256([]byte(canonicalJSON(a)))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}
