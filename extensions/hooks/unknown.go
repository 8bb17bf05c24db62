package hooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// checkKeys examines the keys of an object that a script printed. A key that resembles a known one,
// or that restricts calls in other programs, is a problem: if eca only ignored it, a call would run
// or a result would pass although the script forbids it. Any other key is a note.
func (o *output) checkKeys(fields map[string]json.RawMessage, known []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		text := "it printed the unknown key " + forDisplay(name)
		meant, instead := suggest.Nearest(name, known), foreignKeys()[name]
		changesResult := meant == replacesOutput || instead == replacesOutput
		if meant != "" || instead != "" {
			o.problems = append(o.problems, text+suggestion(meant, instead))
		} else {
			o.notes = append(o.notes, text+", which has no effect")
		}
		o.changesResult = o.changesResult || changesResult
	}
}

// suggestion says which key was probably meant.
func suggestion(meant, instead string) string {
	switch {
	case instead == "approval":
		return "; hooks of eca print approval, or exit with code 2"
	case instead != "":
		return fmt.Sprintf("; hooks of eca print %s", instead)
	}
	return fmt.Sprintf("; did you mean %s?", meant)
}

// foreignKeys maps keys with which scripts for other programs restrict a call or change its result
// to eca's keys.
func foreignKeys() map[string]string {
	out := map[string]string{"continue_execution": "continue", "modifiedArgs": "updatedInput", "tool_input": "updatedInput"}
	for _, name := range strings.Fields("decision permissionDecision permission hookSpecificOutput block blocked deny denied behavior cancel") {
		out[name] = "approval"
	}
	for _, name := range strings.Fields("output result tool_response updatedOutput updatedToolOutput updatedMCPToolOutput updated_mcp_tool_output updatedResult modifiedResult") {
		out[name] = replacesOutput
	}
	return out
}
