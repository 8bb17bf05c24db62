package hooks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// replacesOutput is the key with which a script replaces the result of a tool.
const replacesOutput = "replacedOutput"

// Exit codes of a shell that cannot run a program.
const (
	notExecutable = 126
	notFound      = 127
)

// guardResult prevents a failed postToolCall hook from passing on a result that it should have
// changed. If the script replaces results, or might do so, the result is withheld; otherwise it
// passes. In both cases the user and the model are notified. The script's stderr may quote the result:
// only the user sees it, and only if the result passes.
func (s *Set) guardResult(h hook, a action, c *Call, out *Outcome, r scriptRun, answer output, o Observer) {
	if c.Event != PostToolCall || h.Claude && !answer.changesResult { // hooks of Claude Code cannot replace a result
		return
	}
	if answer.ReplacedOutput != nil || r.status == interventionCode {
		s.replaced.Store(a.name, true)
		return
	}
	if foundNothing(a, c.Roots[0], r) {
		return
	}
	rewrites := answer.changesResult || s.rewrites(a, c.Roots[0], r) || strings.Contains(r.stdout, replacesOutput)
	cause := failure(r, answer, rewrites || h.looksLikeAnswer(r.stdout))
	if cause == "" {
		return
	}
	failed := fmt.Sprintf("Hook '%s' failed after %s: ", a.name, c.Tool.Name)
	notice := failed + cause + "."
	if rewrites {
		text := fmt.Sprintf("[Tool output withheld: the hook '%s' failed (%s), which may have to change this output first. The call itself has run.]", a.name, cause)
		out.Output = &text
		c.Fields["tool_response"] = text
		notice += " The model gets no result, because the hook may have to change it first. Fix the hook, or remove it."
	} else {
		out.Context = append(out.Context, notice+" The result is as the tool returned it.")
		if stderr := sentence(r.stderr); stderr != "" {
			cause += ": " + stderr
		}
		notice = failed + cause + ". The model gets the result as the tool returned it."
	}
	if o != nil {
		o.Said(notice)
	}
}

// guardCall reports a failed preToolCall hook. It makes eca ask before the call if the hook has decided
// something that eca cannot read: the script may have denied the call.
func (out *Outcome) guardCall(c Call, hook, cause string, decided bool, o Observer) {
	if c.Event != PreToolCall {
		return
	}
	then := "The call was not stopped, because a hook that fails does not block (exit code 2 does)."
	if decided {
		then = "The call needs your approval, because the hook may have to deny it."
	}
	if decided && strictness(out.Approval) < strictness("ask") {
		out.Approval, out.Approver = "ask", hook
	}
	if o != nil {
		o.Said(fmt.Sprintf("Hook '%s' failed before %s: %s. %s", hook, c.Tool.Name, sentence(cause), then))
	}
}

// sentence returns a text for display, on one line and without a final period.
func sentence(text string) string {
	return forDisplay(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."))
}

// failure describes how a script failed; empty if it did not. mustBeJSON means that its output must be a
// JSON object.
func failure(r scriptRun, answer output, mustBeJSON bool) string {
	switch {
	case r.problem != "":
		return strings.TrimSuffix(r.problem, ".")
	case r.status == notFound:
		return fmt.Sprintf("exit code %d, a program that it calls was not found", r.status)
	case r.status == notExecutable:
		return fmt.Sprintf("exit code %d, a program that it calls cannot be executed", r.status)
	case r.status != 0:
		return fmt.Sprintf("exit code %d", r.status)
	case !r.complete:
		return "its output is too long to be used"
	case len(answer.problems) > 0:
		return strings.TrimSuffix(strings.Join(answer.problems, "; "), ".")
	case !mustBeJSON || strings.TrimSpace(r.stdout) == "":
		return ""
	}
	if _, ok := parse(r.stdout); ok {
		return ""
	}
	if strings.HasPrefix(r.stdout, "{") {
		return "its output is invalid JSON"
	}
	return "its output must be a JSON object without other text"
}

// rewrites reports whether an action may replace results: its script contains the key, it has
// replaced one before, or its script could not be read or run.
func (s *Set) rewrites(a action, root string, r scriptRun) bool {
	if _, before := s.replaced.Load(a.name); before || !r.ran || r.status == notFound || r.status == notExecutable {
		return true
	}
	if a.File != "" {
		text, err := safeio.Read(scriptPath(a.File, root), maxOutput)
		return err != nil || strings.Contains(string(text), replacesOutput)
	}
	if strings.Contains(a.Shell, replacesOutput) {
		return true
	}
	// A script may only call another program: jq -f redact.jq, python3 redact.py.
	words := strings.FieldsFunc(a.Shell, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'`;|&()<>=", c) })
	for _, word := range words {
		text, err := safeio.Read(scriptPath(os.ExpandEnv(word), root), maxOutput)
		if err == nil && strings.Contains(string(text), replacesOutput) {
			return true
		}
	}
	return false
}

// scriptPath returns the path of a hook's file.
func scriptPath(file, root string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			file = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, file)
	}
	return file
}
