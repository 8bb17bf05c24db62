package report

// Planned describes a case of the plan for which a store has attempts of an earlier process. With it,
// the store decides which of these attempts can be reused.
type Planned struct {
	Key       [16]byte // identifies the case, and everything that determines its result
	StoredKey [16]byte // the key under which the store has the attempts: Key, or that of an alias of the case
	Index     int      // of the case in the plan
	Repeat    int      // number of planned attempts
	Agent     int64    // hash of the agent's current self-description; 0 if it does not start
	Selected  bool     // by the run's filter
}
