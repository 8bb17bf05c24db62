// Package cluster distributes the attempts of an evaluation over several machines, with NATS
// JetStream between them.
//
// All runs share one stream of work, which has a message for each attempt that is waiting or running.
// Each run has its own stream of results. Object Stores contain manifests, the files that they refer
// to, and long results. A KV bucket contains the documents and states of runs. Submit creates a run,
// and a Worker makes attempts. A Follower reads results and, if it is the leader, publishes work. Any
// process with the rights of a controller can continue a run whose leader has disappeared.
//
// Guarantees:
//   - Each attempt has at most one result, and exactly one once a run has finished. A second
//     result is refused.
//   - A run survives the end of any worker, follower or server.
//   - The number of running attempts of a lane never exceeds its limit, over all workers and runs.
//   - A worker only runs manifests that were signed with a key it trusts, and only in the kinds
//     of environments that it was started for, regardless of the origin of the work.
//   - Roles have the rights that RightsOf lists.
//
// It does not guarantee that an attempt is made only once: if a worker is lost after an attempt but
// before it publishes the result, another worker repeats the attempt. The package does not link a NATS
// server.
package cluster
