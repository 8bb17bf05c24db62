package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// startTimeout is the time limit for starting an agent if no limit for calls is set. It is long because
// the agent may have to be compiled first.
const startTimeout = 2 * time.Minute

// callTimeout returns the time limit for one call of an agent.
func callTimeout(flag string) (time.Duration, error) {
	name, text := "--timeout", flag
	if text == "" {
		name, text = ecp.TimeoutVariable, os.Getenv(ecp.TimeoutVariable)
	}
	if text == "" {
		return runtime.DefaultTimeout, nil
	}
	d, err := usage.Time(text)
	if err != nil {
		return 0, usage.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// durationVariable is the environment variable with the time limit of a run, in seconds.
const durationVariable = "ECP_MAX_DURATION"

// duration returns the time limit of the run; 0 means unlimited. The flag and the variable of the
// reference have the exit codes of the reference: text that is not a number is wrong usage, a number
// that is not a valid limit is an error.
func (f *runFlags) duration() (time.Duration, error) {
	if f.maxTime != "" {
		d, err := usage.Time(f.maxTime)
		if err != nil {
			return 0, usage.Errorf("--max-time: %w", err)
		}
		return d, nil
	}
	name, text := "--max-duration", f.maxDuration
	if text == "" {
		name, text = durationVariable, os.Getenv(durationVariable)
	}
	if text == "" {
		return 0, nil
	}
	d, err := usage.Time(text)
	if err == nil {
		return d, nil
	}
	if _, number := strconv.ParseFloat(text, 64); number != nil && name != durationVariable {
		return 0, usage.Errorf("%s: %w", name, err)
	}
	return 0, fmt.Errorf("%s: %w", name, err)
}
