package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/doctor"
)

const plantedKey = "sk-plantedKey-0123456789"

// runDoctor runs the doctor and returns its findings by subject.
func runDoctor(t *testing.T, here place, args ...string) (found map[string][]doctor.Finding, code int) {
	t.Helper()
	out, stderr, code := runProgram(t, here, "", append([]string{"doctor", "--json"}, args...)...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s%s", err, out, stderr)
	}
	if report.Healthy != (code == 0) {
		t.Errorf("healthy: %v, exit %d", report.Healthy, code)
	}
	found = map[string][]doctor.Finding{}
	for _, s := range report.Sections {
		for _, f := range s.Findings {
			found[f.Subject] = append(found[f.Subject], f)
		}
	}
	if strings.Contains(out+stderr, plantedKey) {
		t.Errorf("a secret is shown: %s%s", out, stderr)
	}
	return found, code
}

func TestDoctor(t *testing.T) {
	asked := make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		switch {
		case strings.HasPrefix(r.URL.Path, "/bare"):
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Authorization") != "Bearer "+plantedKey:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": {"message": "who is ` + r.Header.Get("Authorization") + `?"}}`))
		default:
			_, _ = w.Write([]byte(`{"data": [{"id": "one"}, {"id": "two"}]}`))
		}
	}))
	defer srv.Close()
	expect := func(found map[string][]doctor.Finding, subject string, status doctor.Status, text string) {
		t.Helper()
		if !slices.ContainsFunc(found[subject], func(f doctor.Finding) bool { return f.Status == status && strings.Contains(f.Text, text) }) {
			t.Errorf("%s: %+v, want %s %q", subject, found[subject], status, text)
		}
	}

	// A configuration that works, except for what cannot be checked.
	here := newPlace(t, "OLLAMA_API_URL=", "ACME_API_KEY="+plantedKey, "no_proxy=*", "https_proxy=http://me:"+plantedKey+"@proxy.example:3128", `ECA_CONFIG={"defaultModel": "acme/one", "providers": {
		"acme": {"api": "openai-chat", "url": "`+srv.URL+`/v1"},
		"here": {"api": "openai-chat", "url": "`+srv.URL+`/bare", "models": {"m": {}}},
		"quiet": {"api": "openai-chat", "url": "`+srv.URL+`/bare/quiet", "fetchModels": false, "models": {"m": {}}}}}`)
	found, code := runDoctor(t, here)
	if code != 0 {
		t.Errorf("exit %d: %+v", code, found)
	}
	expect(found, "provider acme", doctor.OK, "openai-chat, "+srv.URL+"/v1: key from ACME_API_KEY, answers and lists 2 models")
	expect(found, "provider here", doctor.Warning, "needs no key, has no list of models (here answered 404 Not Found")
	expect(found, "provider quiet", doctor.OK, "needs no key (not tried), answers; has no list of models that is asked for, 1 configured")
	expect(found, "default model", doctor.OK, "acme/one, as ECA_CONFIG:1 says")
	expect(found, "not set up", doctor.Note, "anthropic, azure")
	expect(found, "proxy for https://", doctor.Note, "http://proxy.example:3128, with a user, from https_proxy")
	expect(found, "without a proxy", doctor.Note, "this machine; *")
	expect(found, "chats", doctor.OK, "chats.db can be read; chats of these workspace folders: 0")
	expect(found, "shell", doctor.OK, "runs commands")
	expect(found, "https_proxy", doctor.Note, "set, hidden")

	for len(asked) > 0 {
		<-asked
	}
	found, code = runDoctor(t, here, "--offline")
	expect(found, "provider acme", doctor.Note, "key from ACME_API_KEY, not asked")
	if code != 0 || len(asked) > 0 {
		t.Errorf("offline: exit %d, asked %d times", code, len(asked))
	}

	// Each problem is named, and the exit code reports it.
	here = newPlace(t, "ALL_PROXY=ftp://me:"+plantedKey+"@proxy", "OPENAI_API_KEY="+plantedKey, `ECA_CONFIG={"defaultModel": "nowhere/m", "network": {"caCertFile": "/nowhere/ca.pem"}, "toolCall": {"shellCommand": {"path": "/nowhere/shell"}}, "providers": {
		"wrong": {"api": "openai-chat", "url": "`+srv.URL+`/v1", "key": "sk-wrong-0123456789"},
		"keyless": {"api": "openai-chat", "url": "https://keyless.example"},
		"tape": {"api": "cassette", "url": "/nowhere/tape.yaml"},
		"gone": {"api": "openai-chat", "url": "http://127.0.0.1:1", "fetchModels": false, "models": {"m": {}}}}}`)
	if err := os.MkdirAll(filepath.Join(here.root, ".eca"), 0o700); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(here.root, ".eca", "config.json")
	if err := os.WriteFile(broken, []byte("{\n  nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, code = runDoctor(t, here)
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	expect(found, broken+":2:3", doctor.Problem, "is not a value")
	times := 0
	for subject := range found {
		if strings.Contains(subject, broken) {
			times++
		}
	}
	if times != 1 {
		t.Errorf("the broken file is listed %d times: %+v", times, found)
	}
	expect(found, "ECA_CONFIG:1:43", doctor.Problem, "network.caCertFile: /nowhere/ca.pem cannot be read")
	expect(found, "default model", doctor.Problem, "nowhere/m (ECA_CONFIG:1) cannot be used, openai/gpt-5.2 is used: ")
	expect(found, "provider wrong", doctor.Problem, "key from ECA_CONFIG:2, does not list its models: wrong answered 401 Unauthorized: who is")
	expect(found, "provider keyless", doctor.Problem, "needs a key")
	expect(found, "provider tape", doctor.Problem, "the cassette cannot be read: open /nowhere/tape.yaml: no such file or directory (named by providers.tape.url of ECA_CONFIG:4)")
	expect(found, "provider gone", doctor.Problem, "does not answer: connection refused by 127.0.0.1:1")
	expect(found, "provider ollama", doctor.Problem, "does not list its models: ollama: connection refused by 127.0.0.1:1")
	expect(found, "provider ollama", doctor.Problem, "Nothing listens at http://127.0.0.1:1: start the server (ollama serve)")
	expect(found, "provider openai", doctor.Problem, "ALL_PROXY is not a usable proxy")
	expect(found, "proxy for http://", doctor.Problem, "ALL_PROXY is not a usable proxy")
	expect(found, "shell", doctor.Problem, "/nowhere/shell")

	out, stderr, code := runProgram(t, here, "", "doctor", "--offline")
	if code != 1 || !strings.Contains(out, "\n  PROBLEM  provider keyless: ") || !strings.Contains(stderr, "does not work") || strings.Contains(out+stderr, plantedKey) {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if _, stderr, code := runProgram(t, here, "", "doctor", "--ofline"); code != 2 || !strings.Contains(stderr, "--ofline") {
		t.Errorf("a typo: exit %d, %s", code, stderr)
	}
}

// The name of an MCP server's script is not a secret; the value after a flag may be one.
func TestDoctorShowsTheScriptOfAnMCPServer(t *testing.T) {
	here := newPlace(t)
	script := filepath.Join(here.root, "server.py")
	file := filepath.Join(here.root, ".eca", "config.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(script, []byte("1"), 0o600),
		os.WriteFile(file, []byte(`{"mcpServers": {"m": {"disabled": true, "command": "python3", "args": ["server.py", "--password", "config.json-hunter2"]}}, "nope-config.json-hunter2": 1}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := runProgram(t, here, "", "trust", "--yes"); code != 0 {
		t.Fatal(errOut)
	}
	if err := os.WriteFile(script, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ := runProgram(t, here, "", "doctor", "--offline")
	if !strings.Contains(out, "since then: server.py changed") || strings.Contains(out, "hunter2") {
		t.Errorf("%s", out)
	}
}
