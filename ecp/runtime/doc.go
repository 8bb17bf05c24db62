// Package runtime evaluates agents (ECP): it reads a manifest, talks to the agent over stdio or
// HTTP, grades each step with package grade, and returns a report.
//
// It owns manifests, connections to agents, the run with its limits, repetitions, and
// workspaces, and the conformance checks.
//
// Guarantees:
//   - An error in one scenario is an error of that scenario. It never ends the run.
//   - An error of the agent or the judge is reported as an error, not as a failed check.
//   - An agent that does not answer, floods its output, or sends wrong ids delays only its own
//     scenario, and for no longer than the time limit.
//   - When a run ends, no process of an agent is left, within the guarantees of internal/proc.
//   - An attempt that its store has is not made again.
//
// It does not print, does not decide exit codes, and knows no model: its caller passes the judge.
package runtime

// MaxRepeat limits how often one scenario is run.
const MaxRepeat = 10000
