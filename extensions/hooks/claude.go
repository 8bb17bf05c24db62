package hooks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// Hooks in the format of Claude Code's settings run like eca's own hooks. This file contains the
// differences: the format of the settings, the names of tools and arguments, additional input
// fields, and the format of the output.

// claudeEvents maps Claude Code's events to eca's.
func claudeEvents() map[string]Event {
	return map[string]Event{
		"PreToolUse": PreToolCall, "PostToolUse": PostToolCall, "UserPromptSubmit": PreRequest, "Stop": PostRequest,
		"SubagentStart": SubagentStart, "SubagentStop": SubagentPostRequest, "PreCompact": PreCompact,
		"SessionStart": ChatStart, "SessionEnd": SessionEnd,
	}
}

func claudeEvent(e Event) string {
	for name, event := range claudeEvents() {
		if event == e {
			return name
		}
	}
	return string(e)
}

// claudeTool is Claude Code's name for a tool and its arguments.
type claudeTool struct {
	name string
	args map[string]string
}

func claudeTools() map[string]claudeTool {
	path := map[string]string{"path": "file_path"}
	return map[string]claudeTool{
		"shell_command":  {"Bash", nil},
		"read_file":      {"Read", map[string]string{"path": "file_path", "line_offset": "offset"}},
		"write_file":     {"Write", path},
		"edit_file":      {"Edit", map[string]string{"path": "file_path", "original_content": "old_string", "new_content": "new_string", "all_occurrences": "replace_all"}},
		"multi_edit":     {"MultiEdit", path},
		"glob":           {"Glob", nil},
		"web_fetch":      {"WebFetch", nil},
		"grep":           {"Grep", map[string]string{"include": "glob", "max_results": "head_limit"}},
		"directory_tree": {"LS", nil},
		"task":           {"TodoWrite", nil},
		"spawn_agent":    {"Task", nil},
		"skill":          {"Skill", nil},
		"ask_user":       {"AskUserQuestion", nil},
	}
}

// claudeName returns Claude Code's name for a tool.
func claudeName(t Tool) string {
	if t.Server != tools.Native {
		return "mcp__" + t.Server + "__" + t.Name
	}
	if known, ok := claudeTools()[t.Name]; ok {
		return known.name
	}
	return t.Name
}

// renameArguments renames arguments from eca's names to Claude Code's, or the other way round if back is
// true.
func renameArguments(t Tool, args map[string]json.RawMessage, back bool) map[string]json.RawMessage {
	out := maps.Clone(args)
	if t.Server != tools.Native {
		return out
	}
	for here, there := range claudeTools()[t.Name].args {
		from, to := here, there
		if back {
			from, to = there, here
		}
		if v, ok := args[from]; ok {
			delete(out, from)
			out[to] = v
		}
	}
	return out
}

// maxSettings is the limit of a settings file, in bytes.
const maxSettings = 1 << 20

// ReadClaude returns the hooks in files with Claude Code's settings. A missing file has no hooks.
// problems names hooks that cannot be used. If a file is invalid or empty, as happens while it is
// edited and saved, its previous hooks stay in effect.
func ReadClaude(before []Definition, paths ...string) (defs []Definition, problems []Problem) {
	for _, path := range paths {
		data, err := safeio.Read(path, maxSettings)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err = safeio.Cause(err) // the problem names the file already
		switch {
		case err != nil:
		case safeio.IsUTF16(data):
			err = errors.New("the text is UTF-16; save it as UTF-8")
		case !json.Valid(data):
			err = errors.New("it is not valid JSON")
		}
		if err != nil {
			cause := err.Error()
			for _, d := range before {
				if d.Source == path {
					defs = append(defs, d)
					cause = err.Error() + " (what the file said before stays in effect)"
				}
			}
			problems = append(problems, Problem{Source: path, Cause: cause})
			continue
		}
		some, wrong := parseClaude(path, data)
		defs, problems = append(defs, some...), append(problems, wrong...)
	}
	return defs, problems
}

// parseClaude parses one settings file.
func parseClaude(path string, data []byte) (defs []Definition, problems []Problem) {
	wrong := func(format string, args ...any) {
		problems = append(problems, Problem{Source: path, Cause: fmt.Sprintf(format, args...)})
	}
	var settings struct {
		DisableAllHooks bool                       `json:"disableAllHooks"`
		Hooks           map[string]json.RawMessage `json:"hooks"`
		Permissions     json.RawMessage            `json:"permissions"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		wrong("%s", wrongType("", err))
		return nil, problems
	}
	for _, key := range lostPermissions(settings.Permissions) {
		wrong("permissions.%s: eca reads only hooks in this file, so this restricts nothing; use toolCall.approval in eca's own configuration", key)
	}
	if settings.DisableAllHooks {
		return nil, problems
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Hooks)) {
		event, known := claudeEvents()[name]
		if !known {
			wrong("hooks.%s: eca has no such event; its hooks do not run", name)
			continue
		}
		var groups []struct {
			Matcher string `json:"matcher"`
			Hooks   []struct {
				Type    string  `json:"type"`
				Command string  `json:"command"`
				Timeout float64 `json:"timeout"` // seconds
			} `json:"hooks"`
		}
		if err := json.Unmarshal(settings.Hooks[name], &groups); err != nil {
			wrong("%s", wrongType("hooks."+name, err))
			continue
		}
		for i, g := range groups {
			d := Definition{Name: fmt.Sprintf("claude:%s-%d", name, i+1), Source: path, Claude: true, Hook: config.Hook{Type: string(event), RunOnError: false}}
			if g.Matcher != "" && g.Matcher != "*" {
				d.Matcher = g.Matcher
			}
			for _, h := range g.Hooks {
				if h.Type != "command" || h.Command == "" {
					wrong("hooks.%s: the type %q is not supported; use command", name, h.Type)
					continue
				}
				millis := claudeLimit
				if h.Timeout > 0 {
					millis = int(min(h.Timeout, 24*3600) * 1000)
				}
				d.Actions = append(d.Actions, config.HookAction{Type: "shell", Shell: h.Command, Timeout: &millis})
			}
			if len(d.Actions) > 0 {
				defs = append(defs, d)
			}
		}
	}
	return defs, problems
}

// wrongType describes the error of decoding the value at a path, without types of Go.
func wrongType(path string, err error) string {
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "it is not valid: " + err.Error()
	}
	at := strings.Trim(path+"."+kind.Field, ".")
	return fmt.Sprintf("%s cannot be a JSON %s", cmp.Or(at, "the file"), kind.Value)
}

// lostPermissions returns the keys in Claude Code's permissions that restrict tool calls there.
func lostPermissions(raw json.RawMessage) (keys []string) {
	var permissions map[string]json.RawMessage
	_ = json.Unmarshal(raw, &permissions) // another type restricts nothing in Claude Code either
	for _, key := range []string{"deny", "ask"} {
		var rules []any
		if json.Unmarshal(permissions[key], &rules) == nil && len(rules) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// claudeLimit is Claude Code's default time limit for a script, in milliseconds.
const claudeLimit = 60_000

// ClaudeSettings returns the paths of the settings files, including those in workspace folders.
func ClaudeSettings(home string, roots []string) []string {
	var out []string
	if home != "" {
		out = append(out, filepath.Join(home, "settings.json"))
	}
	for _, root := range roots {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			out = append(out, filepath.Join(root, ".claude", name))
		}
	}
	return out
}

// claudeSubject returns the text that a matcher of Claude Code is applied to.
func claudeSubject(c Call) string {
	switch {
	case c.Tool != nil:
		return claudeName(*c.Tool)
	case c.Event == ChatStart && c.Fields["resumed"] == true:
		return "resume"
	case c.Event == ChatStart:
		return "startup"
	}
	return c.Trigger
}

// claudeFields adds the input fields of Claude Code's scripts.
func claudeFields(fields map[string]any, c Call) {
	fields["hook_event_name"] = claudeEvent(c.Event)
	fields["transcript_path"], fields["permission_mode"] = "", "default"
	if id, ok := fields["chat_id"]; ok {
		fields["session_id"] = id
	}
	switch c.Event {
	case PreToolCall, PostToolCall:
		var args map[string]json.RawMessage
		_ = json.Unmarshal(c.Tool.Arguments, &args)
		fields["tool_name"], fields["tool_input"], fields["tool_use_id"] = claudeName(*c.Tool), renameArguments(*c.Tool, args, false), c.Tool.CallID
	case PreCompact:
		fields["trigger"] = c.Trigger
	case ChatStart:
		fields["source"] = claudeSubject(c)
	case PostRequest, SubagentPostRequest:
		fields["stop_hook_active"] = fields["follow_up_active"] == true
	}
}

// claudeOutput is the output of a script for Claude Code.
type claudeOutput struct {
	Decision string `json:"decision"` // block; older scripts also approve
	Reason   string `json:"reason"`
	Specific struct {
		Decision string                     `json:"permissionDecision"`
		Reason   string                     `json:"permissionDecisionReason"`
		Context  string                     `json:"additionalContext"`
		Updated  map[string]json.RawMessage `json:"updatedInput"`
	} `json:"hookSpecificOutput"`
}

// parseClaudeOutput parses the output of a script for Claude Code. blocked means that the script
// blocks the action for the given reason, as exit code 2 does.
func (c Call) parseClaudeOutput(text string) (o output, reason string, blocked bool) {
	o, ok := parse(text, "decision", "reason", "hookSpecificOutput")
	if !ok {
		if c.Event == PreRequest || c.Event == ChatStart || c.Event == SubagentStart {
			o.AdditionalContext = text // in Claude Code, plain output is for the model
		}
		return o, "", false
	}
	var printed claudeOutput
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		o.problems = append(o.problems, fmt.Sprintf("it does not have the form of Claude Code's hooks: %v", err))
		return o, "", false
	}
	var specific struct {
		Fields map[string]json.RawMessage `json:"hookSpecificOutput"`
	}
	_ = json.Unmarshal([]byte(text), &specific) // the output has been decoded before
	o.checkKeys(specific.Fields, []string{"hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext", "updatedInput"})
	o.AdditionalContext = printed.Specific.Context
	switch c.Event {
	case PreToolCall:
		o.Approval = printed.Specific.Decision
		why := printed.Specific.Reason
		if o.Approval == "" {
			o.Approval, why = map[string]string{"block": "deny", "approve": "allow"}[printed.Decision], printed.Reason
		}
		if strictness(o.Approval) == 0 && o.Approval != "" {
			o.problems = append(o.problems, fmt.Sprintf("permissionDecision is %q; it must be allow, ask or deny. It is ignored", o.Approval))
			o.Approval = ""
		}
		if o.Approval == "deny" {
			o.AdditionalContext = join(why, o.AdditionalContext)
		}
		if printed.Specific.Updated != nil {
			o.UpdatedInput = renameArguments(*c.Tool, printed.Specific.Updated, true)
		}
	case PostToolCall:
		if printed.Decision == "block" {
			o.AdditionalContext = join(printed.Reason, o.AdditionalContext)
		}
	default:
		return o, printed.Reason, printed.Decision == "block"
	}
	return o, "", false
}
