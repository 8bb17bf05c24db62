package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// toyServer is a configuration with a language server, in the shape of lsp.
func toyServer(t *testing.T, modes ...string) string {
	t.Helper()
	command, err := json.Marshal(append([]string{os.Args[0], testkit.LanguageServer}, modes...))
	if err != nil {
		t.Fatal(err)
	}
	return `"lsp": {"toy": {"command": ` + string(command) + `, "extensions": [".toy"]}}`
}

const toyEdit = `{tool: eca__edit_file, arguments: {path: "${workspace}/a.toy", original_content: "ERR old", new_content: "new\nERR old\nERR new"}}`

const toyError = "/a.toy:3:5: error: new [toy 7]"

// Without an editor, a language server says what an edit broke: in its result, which the model reads.
func TestExecNamesNewErrors(t *testing.T) {
	needs.POSIX(t)
	for name, c := range map[string]struct {
		user, workspace string // configuration
		named           bool
	}{
		"the user's server":          {toyServer(t), "", true},
		"switched off":               {`"lsp": false`, "", false},
		"disabled":                   {`"lsp": {"toy": {"command": "x", "extensions": [".toy"], "disabled": true}}`, "", false},
		"no diagnostics":             {toyServer(t) + `, "toolCall": {"diagnostics": {"enabled": false}}`, "", false},
		"a workspace's, not trusted": {`"chat": {}`, "{" + toyServer(t) + "}", false},
		"in a folder that is not trusted": {
			toyServer(t), `{"hooks": {"h": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "true"}]}}}`, false,
		},
		"a server that crashes":      {toyServer(t, "crash"), "", false},
		"a server that never starts": {toyServer(t, "crash-start"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, callCassette(toyEdit))
			here := newPlace(t, p.env()...)
			files := map[string]string{"a.toy": "ERR old\n", ".eca/config.json": c.workspace}
			for name, text := range files {
				path := filepath.Join(here.root, name)
				if text == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			here.env = append(here.env, `ECA_CONFIG={`+c.user+`}`)
			_, stderr, code := runProgram(t, here, "", "exec", "--approve", "all", "go")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			raw, err := json.Marshal(p.last(t))
			if err != nil {
				t.Fatal(err)
			}
			said := string(raw)
			if !strings.Contains(said, "Edited ") || strings.Contains(said, "error: old") || strings.Contains(said, toyError) != c.named {
				t.Errorf("%s", said)
			}
		})
	}
}

// eca says once that a language server failed, and not again in another chat.
func TestFailedLanguageServerIsReported(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - calls: ["+toyEdit+"]\n      - {text: Done.}\n  - steps: [{text: Again.}]\n")
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"toolCall": {"approval": {"byDefault": "allow"}}, `+toyServer(t, "crash-start")+`}`)
	if err := os.WriteFile(filepath.Join(here.root, "a.toy"), []byte("ERR old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	editor := here.serve(t)
	editor.Open(here.root, nil)
	editor.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	editor.Await(0, "the notice", fake.Contains("$/showMessage", "The language server ", " failed: it ended with exit code 3: cannot start"))
	editor.Await(0, "the end", fake.Contains("chat/statusChanged", "idle"))
	editor.Call("chat/prompt", map[string]any{"chatId": "d", "message": "again"})
	editor.Await(0, "the end", fake.Contains("chat/statusChanged", `"d"`, "idle"))
	if told := strings.Count(editor.Conversation(), " failed: it ended with exit code 3"); told != 1 {
		t.Errorf("the user was told %d times that the server failed, want once", told)
	}
	shutDown(t, editor)
}

// The doctor says nothing about the servers of languages that the folder does not have.
func TestDoctorLeavesOutLanguagesThatTheFolderDoesNotHave(t *testing.T) {
	needs.POSIX(t)
	here := newPlace(t)
	programs := filepath.Join(here.root, "..", "bin")
	here.env = append(here.env, "PATH="+programs+":/usr/bin:/bin")
	for _, name := range []string{"rust-analyzer", "zls"} {
		if err := errors.Join(os.MkdirAll(programs, 0o755), os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\nexit 1\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"README.md", "src/main.rs"} {
		path := filepath.Join(here.root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, _ := runProgram(t, here, "", "doctor", "--offline")
		if got := strings.Contains(stdout, "rust-analyzer was not started, because of --offline"); got != (file == "src/main.rs") || strings.Contains(stdout, "zls") || got != strings.Contains(stdout, "Language servers") {
			t.Errorf("with %s:\n%s%s", file, stdout, stderr)
		}
	}
}

func TestDoctorStartsLanguageServers(t *testing.T) {
	needs.POSIX(t)
	for modes, want := range map[string]string{"": " starts", "crash-start": "does not start: it ended with exit code 3: cannot start"} {
		here := newPlace(t, `ECA_CONFIG={`+toyServer(t, strings.Fields(modes)...)+`}`)
		stdout, stderr, _ := runProgram(t, here, "", "doctor")
		if !strings.Contains(stdout, "toy: "+os.Args[0]) || !strings.Contains(stdout, want) {
			t.Errorf("%s\n%s", stdout, stderr)
		}
	}
}
