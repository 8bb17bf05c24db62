package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
	"pgregory.net/rapid"
)

// play runs calls one after the other, each with the list of the one before, and returns
// the text that the model gets from the last one.
func play(t *testing.T, calls ...string) (string, tools.Result) {
	t.Helper()
	tool := Tools()[0]
	call := tools.Call{}
	var res tools.Result
	for _, c := range calls {
		call.Arguments = json.RawMessage(c)
		var err error
		if res, err = tool.Run(t.Context(), call, nil); err != nil {
			return err.Error(), res
		}
		call.Tasks = res.Details.Tasks
	}
	return res.Outputs[0], res
}

const plan = `{"op":"plan","tasks":[{"subject":"a","priority":"high"},{"subject":"b","blocked_by":[1]},{"subject":"c","blocked_by":[1,2]}]}`

func TestOperations(t *testing.T) {
	for name, tc := range map[string]struct {
		calls []string
		want  string // the end of the text that the model gets
	}{
		"read nothing":        {[]string{`{"op":"read"}`}, "There are no tasks."},
		"plan":                {[]string{plan}, "0 of 3 tasks done.\n1. [pending] a (high)\n2. [pending] b (medium), blocked by 1\n3. [pending] c (medium), blocked by 1, 2\n"},
		"plan replaces":       {[]string{plan, `{"op":"plan","tasks":[{"subject":"new"}]}`}, "0 of 1 tasks done.\n1. [pending] new (medium)\n"},
		"add":                 {[]string{plan, `{"op":"add","task":{"subject":"d","description":"two\nlines"}}`}, "4. [pending] d (medium): \"two\\nlines\"\n"},
		"ids are not reused":  {[]string{plan, `{"op":"delete","ids":[3]}`, `{"op":"add","task":{"subject":"d"}}`}, "4. [pending] d (medium)\n"},
		"start":               {[]string{plan, `{"op":"start","ids":[1],"active_summary":"x"}`}, "1. [in-progress] a (high)\n2. [pending] b (medium), blocked by 1\n3. [pending] c (medium), blocked by 1, 2\n"},
		"start blocked":       {[]string{plan, `{"op":"start","ids":[2]}`}, "task 2 is blocked by 1"},
		"complete blocked":    {[]string{plan, `{"op":"complete","ids":[2]}`}, "task 2 is blocked by 1"},
		"complete in order":   {[]string{plan, `{"op":"complete","ids":[1,2]}`}, "2 of 3 tasks done.\n1. [done] a (high)\n2. [done] b (medium)\n3. [pending] c (medium)\n"},
		"start done":          {[]string{plan, `{"op":"complete","id":1}`, `{"op":"start","id":1}`}, "task 1 is done already"},
		"delete frees":        {[]string{plan, `{"op":"delete","ids":[1]}`}, "0 of 2 tasks done.\n2. [pending] b (medium)\n3. [pending] c (medium), blocked by 2\n"},
		"update":              {[]string{plan, `{"op":"update","id":3,"task":{"blocked_by":[],"priority":"LOW"}}`}, "3. [pending] c (low)\n"},
		"update with nothing": {[]string{plan, `{"op":"update","id":3}`}, "INVALID_ARGS: update needs task, with the fields to change"},
		"circle":              {[]string{plan, `{"op":"update","id":1,"task":{"blocked_by":[3]}}`}, "would wait for itself"},
		"unknown blocker":     {[]string{`{"op":"plan","tasks":[{"subject":"a","blocked_by":[7]}]}`}, "there is no task 7"},
		"unknown task":        {[]string{plan, `{"op":"complete","ids":[9]}`}, "there is no task 9"},
		"no ids":              {[]string{plan, `{"op":"start"}`}, "INVALID_ARGS: start needs ids"},
		"no tasks":            {[]string{`{"op":"plan"}`}, "INVALID_ARGS: tasks is empty"},
		"no subject":          {[]string{`{"op":"add","task":{"description":"x"}}`}, "INVALID_ARGS: task 1 has no subject"},
		"bad priority":        {[]string{`{"op":"add","task":{"subject":"x","priority":"urgent"}}`}, `INVALID_ARGS: priority is high, medium or low, not "urgent"`},
		"clear":               {[]string{plan, `{"op":"clear"}`}, "There are no tasks."},
		"too many":            {[]string{`{"op":"plan","tasks":[` + strings.Repeat(`{"subject":"x"},`, maxTasks) + `{"subject":"x"}]}`}, "a list has at most 200 tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := play(t, tc.calls...); !strings.HasSuffix(got, tc.want) {
				t.Errorf("got  %q\nwant %q at its end", got, tc.want)
			}
		})
	}
}

// A call that fails does not change the list of tasks that it was given.
func TestFailureChangesNothing(t *testing.T) {
	_, before := play(t, plan)
	was, _ := json.Marshal(before.Details)
	call := tools.Call{Tasks: before.Details.Tasks, Arguments: json.RawMessage(`{"op":"complete","ids":[1,9]}`)}
	if _, err := Tools()[0].Run(t.Context(), call, nil); err == nil {
		t.Fatal("completed a task that does not exist")
	}
	if is, _ := json.Marshal(before.Details); string(is) != string(was) {
		t.Errorf("the list became %s", is)
	}
}

// TestListStaysSound plays random operations. After each that succeeds, the ids in the list are
// unique, blockers exist, and no task is done before its blockers.
func TestListStaysSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := list{}
		id := rapid.IntRange(0, 6)
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			subject := "s"
			blockers := rapid.SliceOfN(id, 0, 2).Draw(t, "blockers")
			a := args{
				Op: rapid.SampledFrom([]string{"plan", "add", "update", "start", "complete", "delete", "read"}).Draw(t, "op"),
				ID: id.Draw(t, "id"), IDs: rapid.SliceOfN(id, 0, 3).Draw(t, "ids"), Task: &fields{Subject: &subject, BlockedBy: &blockers},
			}
			a.Tasks = []fields{*a.Task}
			next := list{lastID: l.lastID, activeSummary: l.activeSummary, tasks: append(l.tasks[:0:0], l.tasks...)}
			if next.apply(a) != nil {
				continue
			}
			l = next
			seen := map[int]bool{}
			for _, task := range l.tasks {
				if seen[task.ID] || task.ID > l.lastID {
					t.Fatalf("id %d twice or never given out: %+v", task.ID, l)
				}
				seen[task.ID] = true
				for _, b := range task.BlockedBy {
					if _, err := l.find(b); err != nil {
						t.Fatalf("task %d waits for %d, which is not there", task.ID, b)
					}
				}
			}
			if err := l.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
