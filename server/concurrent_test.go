package server_test

import "slices"

// inAnnouncedOrder puts the results of concurrent calls into the order in which the calls were announced,
// because the order of their ends depends on timing. A result moves only past other calls'
// announcements, starts and results.
func inAnnouncedOrder(heard []map[string]any) []map[string]any {
	type result struct {
		announced int
		messages  []map[string]any
	}
	var out []map[string]any
	var held []result
	announced, running := map[any]int{}, map[any]bool{}
	release := func() {
		slices.SortStableFunc(held, func(a, b result) int { return a.announced - b.announced })
		for _, r := range held {
			out = append(out, r.messages...)
		}
		held = nil
	}
	before := ""
	for i, m := range heard {
		c, _ := m["content"].(map[string]any)
		kind, _ := c["type"].(string)
		switch {
		case kind == "toolCalled" && running[c["id"]] && c["name"] != "task": // the task tool runs alone
			held = append(held, result{announced[c["id"]], []map[string]any{m}})
		case kind == "progress" && before == "toolCalled" && len(held) > 0: // back to "Generating"
			last := &held[len(held)-1]
			last.messages = append(last.messages, m)
		case kind == "toolCallRun":
			announced[c["id"]] = i
			out = append(out, m)
		case kind == "toolCallRunning":
			running[c["id"]] = true
			out = append(out, m)
		case kind == "progress" && before == "toolCallRunning": // the progress of the call
			out = append(out, m)
		default:
			release()
			out = append(out, m)
		}
		before = kind
	}
	release()
	return out
}
