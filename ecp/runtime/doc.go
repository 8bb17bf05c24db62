// Package runtime evaluates agents (ECP): it reads a manifest, talks to the agent over stdio
// or HTTP, has package grade judge each step, and makes a report.
//
// It owns manifests, connections to agents, the run with its limits, repetitions, workspaces
// and journal, and the conformance checks.
//
// Guarantees: one scenario that goes wrong is an error of that scenario and never ends or
// loses the run; what went wrong with the agent or the judge is an error, which is another
// thing than a check that failed; an agent that does not answer, floods, or lies about ids
// holds up its own scenario for no longer than the time limit; when a run ends, no process of
// an agent is left (within what internal/proc promises); a scenario whose line is in the
// journal is not run again.
//
// It does not print, does not decide exit codes, and knows no model: the judge is given.
package runtime

// MaxRepeat bounds how often one scenario is run.
const MaxRepeat = 10000
