package config

// Conformance lists the behaviours for test suites that compare eca's traffic with that of the
// reference server (eca-recorded). The zero value is normal operation.
type Conformance struct {
	FixedOrder       bool // background work runs at a fixed point of a chat, one step after the other
	UnmergedDeltas   bool // deltas are shown as they arrive, never merged
	ReferenceContent bool // only the commands and contents that the reference server also shows
	CompactByTool    bool // the model compacts a conversation by calling a tool
	Offline          bool // nothing is fetched, and the state is in the cache folder, because such suites set only this folder
}

// Conformance returns the behaviours that the option env selects.
func (c *Config) Conformance() Conformance {
	on := c.Env == "test"
	return Conformance{FixedOrder: on, UnmergedDeltas: on, ReferenceContent: on, CompactByTool: on, Offline: on}
}
