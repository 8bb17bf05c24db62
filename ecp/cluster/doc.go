// Package cluster spreads the attempts of an evaluation over several machines, with NATS JetStream
// between them.
//
// All runs share one stream of work, which has a message for each attempt that waits or runs. Each
// run has its own stream of results. Object Stores hold manifests, the files that they refer to,
// and long results. A KV bucket holds the documents and states of runs. Submit makes a run, and a
// Worker makes attempts. A Follower takes results and, if it leads, hands out work. Any process
// with the rights of a controller can continue a run whose last leader is gone.
//
// Guarantees:
//   - Each attempt has at most one result, and exactly one once a run has finished. A second
//     result is refused.
//   - Any worker, follower or server may end at any moment.
//   - The attempts of a lane in flight are at most its limit, over all workers and runs.
//   - A worker only runs manifests that were signed with a key it trusts, and only in the kinds
//     of environments that it was started for, regardless of the origin of the work.
//   - Roles have the rights that RightsOf lists.
//
// It does not run an attempt exactly once: if a worker is lost after an attempt and before its
// result, another worker repeats the attempt. It embeds no server, and links none.
package cluster
