package shell

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed bg_job.md
var bgJobDoc string

const (
	actionList = "list"
	actionRead = "read_output"
	actionKill = "kill"
)

type bgJobArgs struct {
	Action string `json:"action" jsonschema:"What to do."`
	JobID  string `json:"job_id,omitempty" jsonschema:"Which job; needed for read_output and kill."`
}

// bgJob returns the tool bg_job (eca-features.md 17, 23). Each chat sees only its own jobs.
func (j *Jobs) bgJob() tools.Tool {
	ownJob := func(call tools.Call, a bgJobArgs) (*job, error) {
		if a.JobID == "" {
			return nil, fmt.Errorf("INVALID_ARGS: %s needs job_id", a.Action)
		}
		b, ok := j.find(a.JobID)
		if !ok || j.info(b).ChatID != call.ChatID {
			return nil, fmt.Errorf("unknown job %q; list shows the jobs of this chat", a.JobID)
		}
		return b, nil
	}
	return tools.Definition[bgJobArgs]{
		Name: "bg_job", Description: bgJobDoc, Preparing: "Preparing job",
		Enums: map[string][]string{"action": {actionList, actionRead, actionKill}},
		Plan: func(_ context.Context, call tools.Call, a bgJobArgs) (tools.Plan, error) {
			if a.Action == actionList {
				return tools.Plan{Summary: "Listing background jobs", ReadOnly: true}, nil
			}
			b, err := ownJob(call, a)
			if err != nil {
				return tools.Plan{}, err
			}
			what := "Reading the output of "
			if a.Action == actionKill {
				what = "Ending "
			}
			return tools.Plan{Summary: fmt.Sprintf("%s%s (%s)", what, a.JobID, j.info(b).Label), ReadOnly: a.Action == actionRead}, nil
		},
		Run: func(_ context.Context, call tools.Call, a bgJobArgs, _ tools.Sink) (tools.Result, error) {
			if a.Action == actionList {
				return tools.Text(j.describe(call.ChatID)), nil
			}
			b, err := ownJob(call, a)
			if err != nil {
				return tools.Result{}, err
			}
			if a.Action == actionKill {
				if j.killAndWait(b) {
					return tools.Text(a.JobID + " was ended."), nil
				}
				return tools.Text(fmt.Sprintf("%s had ended before: %s.", a.JobID, j.info(b).Outcome())), nil
			}
			return tools.Text(j.readOutput(b)), nil
		},
	}.Build()
}

// describe lists a chat's jobs.
func (j *Jobs) describe(chatID string) string {
	list := j.jobsOf(chatID)
	if len(list) == 0 {
		return "There are no background jobs in this chat."
	}
	var b strings.Builder
	for _, info := range list {
		fmt.Fprintf(&b, "%s: %s (%s), %s for %s", info.ID, info.Label, info.Summary, info.Status, info.Elapsed(j.now()))
		if code, ok := info.Exit(); ok {
			fmt.Fprintf(&b, ", exit code %d", code)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readOutput returns the output that has not been read yet.
func (j *Jobs) readOutput(b *job) string {
	info := j.info(b) // before the output, so that the output of an ended job is complete
	if info.Status != tools.JobRunning {
		j.markReported(b)
	}
	list, lost := b.lines.unread()
	head := fmt.Sprintf("%s is %s.", info.ID, info.Status)
	if info.Status != tools.JobRunning {
		head = fmt.Sprintf("%s has ended: %s.", info.ID, info.Outcome())
	}
	if lost > 0 {
		head += fmt.Sprintf(" %d earlier lines were discarded; the beginning of the output is in %s.", lost, b.log)
	}
	if len(list) == 0 {
		return head + " There is no new output."
	}
	return head + "\n" + render(list)
}
