package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// answerCassette is a cassette with an answer for each prompt.
func answerCassette(answers ...string) string {
	out := "cassette: 1\nturns:\n"
	for _, a := range answers {
		text, _ := json.Marshal(a)
		out += "  - steps:\n      - {text: " + string(text) + "}\n"
	}
	return out
}

func TestExecReadsItsPromptFromStdin(t *testing.T) {
	for name, args := range map[string][]string{"no argument": {"exec"}, "dash": {"exec", "-"}} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, answerCassette("fine"))
			out, errOut, code := runProgram(t, newPlace(t, p.env()...), "what is this?\n", args...)
			if got := transcriptOf(p.last(t)); code != 0 || out != "fine\n" || !strings.Contains(got, "user:what is this?") {
				t.Errorf("exit %d, %s%s, %s", code, out, errOut, got)
			}
		})
	}
}

func TestExecJSONBeginsWithTheStartAndEndsWithTheResult(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	out, errOut, code := runProgram(t, here, "", "exec", "hi", "--json")
	var lines []map[string]any
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, s.Text())
		}
		lines = append(lines, line)
	}
	if code != 0 || len(lines) < 3 {
		t.Fatalf("exit %d, %s%s", code, out, errOut)
	}
	start, result := lines[0], lines[len(lines)-1]
	if start["type"] != "start" || start["model"] == "" || start["agent"] != "code" || start["folder"] != here.root {
		t.Errorf("start: %v", start)
	}
	if result["type"] != "result" || result["text"] != "fine" || result["exitReason"] != "done" || result["exitCode"] != 0.0 || result["chatId"] != start["chatId"] || result["usage"] == nil || result["kept"] != true {
		t.Errorf("result: %v", result)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if method, _ := line["method"].(string); method != "$/showMessage" && !strings.HasPrefix(method, "chat/") {
			t.Errorf("a line about something else: %v", line)
		}
	}
}

// While another process uses the chat, the lines name no model that does not exist.
func TestExecLinesOfABusyChat(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps: [{text: first}]\n  - steps: [{text: hanging, hang: true}]\n")
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	other := here.command("exec", "--continue", "go")
	stdin, answer := startPiped(t, other)
	_ = stdin.Close()
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	if _, err := answer.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "--json", "--continue", "hi")
	if code != exitFailed || !strings.Contains(out, "used by another eca process") || strings.Count(out, `"model":""`) != 2 || strings.Contains(out, `"model":"error"`) {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}

func TestExecContinuesTheLastChatOfTheFolder(t *testing.T) {
	p := newProvider(t, answerCassette("first", "second"))
	here := newPlace(t, p.env()...)
	for _, command := range []string{"/costs", "/model"} {
		if out, errOut, code := runProgram(t, here, "", "exec", command); code != 0 || strings.TrimSpace(out) == "" { // the output is the answer
			t.Fatalf("%s: exit %d, %q, %s", command, code, out, errOut)
		}
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--continue", "one"); code != 1 || !strings.Contains(errOut, "no earlier chat") {
		t.Fatalf("a chat of commands alone is continued: exit %d, %s", code, errOut)
	}
	runProgram(t, here, "", "exec", "one")
	if _, errOut, code := runProgram(t, here, "", "exec", "/costs"); code != 0 { // in its own chat
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--continue", "two"); code != 0 {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, "assistant:first") || !strings.Contains(got, "user:two") {
		t.Errorf("the chat was not continued: %s", got)
	}
}

func TestExecContinuesTheChatWhoseIDBeginsSo(t *testing.T) {
	p := newProvider(t, answerCassette("first", "second"))
	here := newPlace(t, p.env()...)
	runProgram(t, here, "", "exec", "one")
	list, _, _ := runProgram(t, here, "", "chats", "list")
	if !strings.HasSuffix(list, "  one\n") {
		t.Errorf("a chat without a title is listed as %q", list)
	}
	found, errOut, code := runProgram(t, here, "", "exec", "/search first")
	for strings.Contains(found, "Not all chats are in the index yet") {
		time.Sleep(50 * time.Millisecond)
		found, errOut, code = runProgram(t, here, "", "exec", "/search first")
	}
	if code != 0 || !strings.Contains(found, "- **one**, ") {
		t.Errorf("a search calls a chat without a title: exit %d: %s%s", code, found, errOut)
	}
	id, _, _ := strings.Cut(list, " ")
	for _, wrong := range []string{id[:3], "zzzz"} {
		if _, errOut, code := runProgram(t, here, "", "exec", "--chat", wrong, "two"); code != 1 || !strings.Contains(errOut, "there is no chat \""+wrong) {
			t.Errorf("--chat %s: exit %d, %s", wrong, code, errOut)
		}
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--chat", id[:8], "two"); code != 0 || !strings.Contains(errOut, "--chat "+id) {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, "assistant:first") || !strings.Contains(got, "user:two") {
		t.Errorf("the chat was not continued: %s", got)
	}
}

func TestExecNamesTheFolderOfAChat(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, answerCassette("first", "second"))
	here := newPlace(t, p.env()...)
	there := filepath.Join(here.root, "there")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "one"); code != 0 {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	_, errOut, _ := runProgram(t, here, "", "exec", "--continue", "two")
	_, line, _ := strings.Cut(errOut, "--chat ")
	chat, _, _ := strings.Cut(line, " ")
	_, errOut, code := runProgram(t, here, "", "exec", "-C", there, "--chat", chat, "more")
	if code != 1 || !strings.Contains(errOut, "continue it there: eca exec -C "+here.root+" --chat "+chat) {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

func TestExecEphemeralLeavesNoChat(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, append(p.env(), "TMPDIR="+t.TempDir(), `ECA_CONFIG={"chat":{"title":true}}`)...)
	out, errOut, code := runProgram(t, here, "", "exec", "--ephemeral", "a secret matter")
	if code != 0 || out != "fine\n" || strings.Contains(errOut, "Continue with") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	if n := p.requests(); n != 1 {
		t.Errorf("%d requests, want 1: an ephemeral chat needs no title", n)
	}
	err := filepath.WalkDir(filepath.Dir(here.root), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "a secret matter") {
			t.Errorf("the prompt is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, _, code := runProgram(t, here, "", "exec", "--continue", "more"); code != 1 {
		t.Errorf("the chat can be continued: exit %d", code)
	}
}

func TestExecWorksInTheFolderOfC(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	dir := filepath.Join(here.root, "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "-C", "sub", "--json", "hi")
	var start struct{ Folder string }
	first, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(first), &start); err != nil || code != 0 || start.Folder != dir {
		t.Errorf("exit %d, %s%s (%v)", code, out, errOut, err)
	}
}

func TestExecWritesTheFinalAnswerToAFile(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: First I look., calls: [{id: c, tool: eca__directory_tree, arguments: {path: \"${workspace}\"}}]}\n      - {text: The answer.}\n")
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "-o", "out.txt", "hi"); code != 0 {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if got, err := os.ReadFile(filepath.Join(here.root, "out.txt")); err != nil || string(got) != "The answer.\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// --output-schema reads what a shell passes for <(...).
func TestExecReadsTheSchemaFromAPipe(t *testing.T) {
	needs.POSIX(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(`{"type": "object"}`); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if schema, err := readSchema(t.Context(), fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || schema == nil {
		t.Error(err)
	}
}

func TestExecHasAnAnswerThatDoesNotMatchTheSchemaRepaired(t *testing.T) {
	p := newProvider(t, answerCassette("It is 3.", "```json\n{\"count\": 3}\n```"))
	here := newPlace(t, p.env()...)
	const mark = "\xef\xbb\xbf" // some editors begin files with it
	schema := mark + `{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}`
	for name, text := range map[string]string{"s.json": schema, "empty.json": mark + "\n"} {
		if err := os.WriteFile(filepath.Join(here.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--output-schema", "empty.json", "how many?"); code != 1 || !strings.Contains(errOut, "empty.json is empty") {
		t.Errorf("an empty schema: exit %d, %s", code, errOut)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "--output-schema", "s.json", "-o", "out.json", "how many?")
	if code != 0 || out != "{\"count\": 3}\n" || !strings.Contains(errOut, "asking once more") {
		t.Errorf("exit %d, %q, %s", code, out, errOut)
	}
	if got, err := os.ReadFile(filepath.Join(here.root, "out.json")); err != nil || string(got) != out {
		t.Errorf("%q, %v", got, err)
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, `"required": ["count"]`) || !strings.Contains(got, "does not match the JSON Schema") {
		t.Errorf("the model did not receive the schema and what is wrong: %s", got)
	}
}

// If the second answer does not match either, the run fails, and exitReason in the JSON says so.
func TestExecFailsWithoutAMatchingAnswer(t *testing.T) {
	p := newProvider(t, answerCassette("It is 3.", "Three."))
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "s.json"), []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "--json", "--output-schema", "s.json", "how many?")
	if code != 1 || !strings.Contains(out, `"exitReason":"failed"`) || !strings.Contains(out, "JSON Schema") {
		t.Errorf("exit %d, %s, %s", code, out, errOut)
	}
}

// A model with image support gets the image. A model without it gets no request, because it would
// answer about an image that it did not see.
func TestExecGivesTheModelAnImage(t *testing.T) {
	for _, takes := range []bool{true, false} {
		p := newProvider(t, answerCassette("a dot", "a dot")) // the text in place of the image counts as a prompt
		here := newPlace(t, append(p.env(), fmt.Sprintf(`ECA_CONFIG={"chat":{"title":false},"providers":{"openai":{"models":{"gpt-5.2":{"imageInput":%t}}}}}`, takes))...)
		png, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
		if err := os.WriteFile(filepath.Join(here.root, "dot.png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errOut, code := runProgram(t, here, "", "exec", "-m", "openai/gpt-5.2", "--image", "dot.png", "what is it?")
		if !takes {
			if code != exitFailed || !strings.Contains(errOut, "eca exec: --image: openai/gpt-5.2 is not known to take images; ") || out != "" || p.requests() != 0 {
				t.Errorf("with a model without image support: exit %d, %d requests, %q, %s", code, p.requests(), out, errOut)
			}
			continue
		}
		if code != 0 || strings.Contains(errOut, "is not known to take images") || out != "a dot\n" {
			t.Errorf("with a model with image support: exit %d, %q, %s", code, out, errOut)
		}
		p.mu.Lock()
		if !strings.Contains(p.bodies[len(p.bodies)-1], "data:image/png;base64,") {
			t.Error("the model did not get the image")
		}
		p.mu.Unlock()
	}
}

// Without a terminal, a call that needs approval does not run. The user is shown how to allow it,
// and the model gets the reason that no user could be asked. Labels are complete.
func TestExecWithoutATerminalSaysHowToAllow(t *testing.T) {
	needs.POSIX(t)
	command := "touch a-file-with-a-rather-long-name-that-does-not-fit-into-a-label.txt && echo done"
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - calls:
        - {id: shell, tool: eca__shell_command, arguments: {command: "`+command+`"}}
        - {id: edit, tool: eca__write_file, arguments: {path: "${workspace}/deep/down/new.txt", content: "x\n"}}
    - {text: "I went on."}
turns: []
`)
	_, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "go")
	for _, want := range []string{"--approve", "refused: $ " + command, "deep/down/new.txt"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("%q is not in\n%s", want, errOut)
		}
	}
	if got := transcriptOf(p.last(t)); code != exitRefused || !strings.Contains(got, "nobody can be asked") || strings.Contains(got, "The user rejected") {
		t.Errorf("exit %d, the model heard: %s", code, got)
	}
	_, errOut, _ = runProgram(t, newPlace(t, p.env()...), "", "exec", "--agent", "plan", "go")
	if !strings.Contains(errOut, "agent plan is read-only") {
		t.Errorf("a read-only agent's denial: %s", errOut)
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, "The agent plan is read-only") {
		t.Errorf("the model of a read-only agent heard: %s", got)
	}
}

// The printed command line continues a chat, with the same configuration and in the same directory.
func TestExecPrintsTheLineThatContinuesTheChat(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, answerCassette("fine", "more"))
	here := newPlace(t, p.env()...)
	here.env = append(here.env, "ECA_CONFIG=")
	for _, dir := range []string{"it's mine", "the work"} {
		if err := os.Mkdir(filepath.Join(here.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := "it's mine/config file.json"
	config := `{"chat": {"title": false}, "providers": {"openai": {"key": "sk-test-0123456789abcdef", "url": "` + p.URL + `"}}}`
	if err := os.WriteFile(filepath.Join(here.root, file), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "--config-file", file, "exec", "-C", "the work", "go")
	_, line, found := strings.Cut(errOut, "Continue with: eca ")
	if code != 0 || out != "fine\n" || !found || !strings.Contains(line, "--config-file ") {
		t.Fatalf("exit code %d, %q\n%s", code, out, errOut)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "again.sh")
	if err := os.WriteFile(script, []byte(self+" "+line), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := runScript(t, here, script); code != 0 || out != "more\n" {
		t.Errorf("exit code %d, %q\n%s", code, out, errOut)
	}
}

// A directory that others can read is refused for chats and keys.
func TestStateDirectoryOfOthersIsRefused(t *testing.T) {
	needs.POSIX(t)
	here := newPlace(t)
	state := filepath.Join(filepath.Dir(here.root), "state", "eca")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"exec", "hi"}, {"login"}, {"doctor", "--offline"}, {"server"}} {
		out, errOut, code := runProgram(t, here, "", args...)
		if code != 1 || !strings.Contains(errOut, "chmod 700 "+state) || !strings.Contains(errOut, "XDG_STATE_HOME") {
			t.Errorf("%v: exit %d, %s%s", args, code, out, errOut)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give a directory away
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 1 || !strings.Contains(errOut, "belongs to another user") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

// If nothing can be written, the run still gets an answer, and one message says that the chat is
// not stored.
func TestExecWithoutRoomForTheChat(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, append(p.env(), "XDG_STATE_HOME=/dev/null/state")...)
	// checkState refuses an impossible directory; a full disk is detected at the first write.
	if _, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 1 || !strings.Contains(errOut, "XDG_STATE_HOME") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	full := newPlace(t, p.env()...)
	cmd := full.command()
	limited := full
	limited.env = append(limited.env, "ECA_TEST_PROGRAM="+cmd.Path)
	script := filepath.Join(full.root, "limited.sh")
	if err := os.WriteFile(script, []byte("ulimit -f 8\nexec \"$ECA_TEST_PROGRAM\" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runScript(t, limited, script, "exec", "hi")
	if code != 0 || out != "fine\n" || strings.Contains(errOut, "Continue with") || !strings.Contains(errOut, "will be lost") || strings.Count(strings.TrimSpace(errOut), "\n") > 1 {
		t.Errorf("exit %d, stdout %q, stderr %s", code, out, errOut)
	}
	out, errOut, code = runScript(t, limited, script, "doctor", "--offline")
	if code != 1 || !strings.Contains(out, "PROBLEM  state directory: ") {
		t.Errorf("doctor: exit %d, %s%s", code, out, errOut)
	}
}

// If the answer cannot be written completely, the file of --output keeps its content.
func TestExecKeepsTheFileOfOutput(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, answerCassette(strings.Repeat("long ", 4000)))
	here := newPlace(t, p.env()...)
	script := filepath.Join(here.root, "limited.sh")
	limited := here
	limited.env = append(limited.env, "ECA_TEST_PROGRAM="+here.command().Path)
	if err := errors.Join(
		os.WriteFile(script, []byte("ulimit -f 8\nexec \"$ECA_TEST_PROGRAM\" \"$@\"\n"), 0o700),
		os.WriteFile(filepath.Join(here.root, "old.txt"), []byte("old"), 0o640),
		os.Symlink("old.txt", filepath.Join(here.root, "link.txt")),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old.txt", "link.txt", "new.txt"} {
		_, errOut, code := runScript(t, limited, script, "exec", "--ephemeral", "-o", name, "hi")
		if code != 1 || !strings.Contains(errOut, "--output: cannot write ") {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
	}
	files, err := filepath.Glob(filepath.Join(here.root, "*.txt"))
	hidden, _ := filepath.Glob(filepath.Join(here.root, ".*.txt*"))
	if got, readErr := os.ReadFile(filepath.Join(here.root, "old.txt")); err != nil || readErr != nil || string(got) != "old" || len(files) != 2 || len(hidden) > 0 {
		t.Errorf("%q, %v, %q %q", got, readErr, files, hidden)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "-o", "link.txt", "hi"); code != 0 {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	info, err := os.Stat(filepath.Join(here.root, "old.txt"))
	if err != nil || info.Mode().Perm() != 0o640 || info.Size() < 1000 {
		t.Errorf("through the link: %v, %v", info, err)
	}
}

func TestLoginSaysThatTheKeyIsAccepted(t *testing.T) {
	out, errOut, code, _ := wrongInput{args: []string{"login", "openai"}, stdin: "sk-right\n", answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-right" {
			http.Error(w, "bad key", http.StatusUnauthorized)
			return
		}
		answerWithText("")(w, r)
	}, env: []string{"OPENAI_API_KEY="}}.run(t)
	if code != 0 || !strings.Contains(out, "accepts the key") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}
