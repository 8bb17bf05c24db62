package testkit

import "go.uber.org/goleak"

// IgnoreNATS ignores a goroutine that NATS's client leaks if an object is stored before the goroutine
// begins: it then waits for a channel that is already nil.
func IgnoreNATS() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
