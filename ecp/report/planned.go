package report

// Planned is a planned case of a run with earlier attempts, which a store compares with the plan.
type Planned struct {
	Key      [16]byte // identifies the case, and everything that determines its result
	Old      [16]byte // differs from Key if the attempts were added under an alias
	Place    int      // in the plan
	Repeat   int      // planned attempts
	Agent    int64    // hash of the agent's current self-description; 0 if it does not start
	Selected bool     // by the run's filter
}
