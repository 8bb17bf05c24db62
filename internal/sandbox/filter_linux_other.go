//go:build linux && !amd64

package sandbox

// Calls that this architecture does not have.
var (
	legacyMetadata []uint32
	legacyRules    []rule
)
