package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// planted maps secrets to the place that contains them, such as a variable or a file in which users
// keep secrets. They do not look like secrets, so a filter has to know them.
type planted map[string]string

// put makes a secret for a place.
func (p planted) put(place string) string {
	s := "zq" + strings.Repeat(string(rune('a'+len(p))), 3) + "7planted-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, place)
	p[s] = place
	return s
}

// check looks for the secrets in a text.
func (p planted) check(t *testing.T, where, text string) {
	t.Helper()
	for secret, place := range p {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("the secret of %s is in %s: ...%s...", place, where, text[max(i-150, 0):min(i+100, len(text))])
		}
	}
}

// No secret reaches logs, the trace of --verbose, the store, recorded cassettes, the output and
// files of commands, or the client: keys of the configuration and of the environment, of netrc, in
// addresses of servers and proxies, and in the output of commands.
func TestSecretsStayHidden(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	p := planted{}
	player, err := cassette.Parse([]byte(`
cassette: 1
turns:
  - user: "look"
    steps:
      - calls:
          - {id: c1, tool: eca__shell_command, arguments: {command: "env; echo; env >&2; exit 3"}}
          - {id: c2, tool: eca__shell_command, arguments: {command: "cat .eca/config.json"}}
          - {id: c3, tool: eca__read_file, arguments: {path: "${workspace}/.eca/config.json"}}
          - {id: c4, tool: eca__grep, arguments: {path: "${workspace}", pattern: "planted"}}
      - {text: "I looked."}
default:
  steps: [{text: "All right."}]
title: "Looking"
`))
	if err != nil {
		t.Fatal(err)
	}
	// A provider that repeats its request in its errors.
	scripted := player.Handler(nil)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/angry") {
			body, _ := io.ReadAll(r.Body)
			said, _ := json.Marshal(fmt.Sprint("I do not know ", r.Header, " with ", r.URL, string(body)))
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":%s,"code":"invalid_api_key"}}`, said)
			return
		}
		scripted.ServeHTTP(w, r)
	}))
	defer provider.Close()

	environment := p.put("ECA_CONFIG")
	here := newPlace(t,
		`ECA_CONFIG={"providers":{"fromenv":{"api":"openai-chat","url":"`+provider.URL+`/angry","key":"`+environment+`","models":{"m":{}}}}}`,
		"ANGRY_API_KEY="+p.put("the environment"), "MY_SERVICE_TOKEN="+p.put("another environment variable"),
		"DATABASE_URL=postgres://me:"+p.put("an address in the environment")+"@localhost/db",
		"HTTPS_PROXY=http://me:"+p.put("the proxy")+"@127.0.0.1:1", "ECA_TEST_REFERENCED="+p.put("a variable that the configuration names"),
		"SHELL=/bin/sh", "USER=ada",
	)
	home := filepath.Dir(here.root)
	keyFile := p.put("a key file")
	config := map[string]any{
		"defaultModel": "mock/m",
		"chat":         map[string]any{"title": false},
		"providers": map[string]any{
			"mock": map[string]any{
				"api": "openai-responses", "url": provider.URL + "/v1", "key": p.put("the global configuration"), "fetchModels": false,
				"extraHeaders": map[string]any{"Authorization": "Bearer " + p.put("a header")},
				"models": map[string]any{"m": map[string]any{
					"extraPayload": map[string]any{"access_token": p.put("a payload")}, "extraHeaders": map[string]any{"X-Api-Key": p.put("a model's header")},
				}},
			},
			"angry":   map[string]any{"api": "openai-chat", "url": provider.URL + "/angry", "fetchModels": true, "models": map[string]any{"m": map[string]any{}}},
			"file":    map[string]any{"api": "anthropic", "url": provider.URL + "/angry", "key": "${file:key.txt}", "models": map[string]any{"m": map[string]any{}}},
			"env":     map[string]any{"api": "google", "url": provider.URL + "/angry", "key": "${env:ECA_TEST_REFERENCED}", "models": map[string]any{"m": map[string]any{}}},
			"rc":      map[string]any{"api": "openai-chat", "url": provider.URL + "/angry", "key": "${netrc:api.example}", "models": map[string]any{"m": map[string]any{}}},
			"gone":    map[string]any{"retry": map[string]any{"maxRetries": 0}, "api": "openai-chat", "url": "http://u:" + p.put("a server's address") + "@127.0.0.1:1/v1?token=" + p.put("a server's parameter"), "key": "k", "models": map[string]any{"m": map[string]any{}}},
			"proxied": map[string]any{"retry": map[string]any{"maxRetries": 0}, "api": "openai-chat", "url": "https://eca.invalid/v1", "key": p.put("a provider behind the proxy"), "models": map[string]any{"m": map[string]any{}}},
		},
		"toolCall":   map[string]any{"environment": map[string]any{"pass": []string{"MY_SERVICE_TOKEN"}}}, // else no command could print it
		"network":    map[string]any{"clientKeyPassphrase": p.put("the client's key")},
		"mcpServers": map[string]any{"db": map[string]any{"command": "no-such-program", "env": map[string]any{"DB_PASSWORD": p.put("an MCP server's environment")}, "disabled": true}},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	local := `{"providers": {"local": {"api": "openai-chat", "url": "` + provider.URL + `/angry", "key": "` + p.put("the workspace's configuration") + `", "models": {"m": {}}}}}`
	for path, text := range map[string]string{
		filepath.Join(home, "config", "eca", "config.json"): string(raw),
		filepath.Join(home, "config", "eca", "key.txt"):     keyFile,
		filepath.Join(here.root, ".eca", "config.json"):     local,
		filepath.Join(home, ".netrc"):                       "machine api.example login me password " + p.put("netrc") + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	tapes := filepath.Join(home, "tapes")
	proc := here.serve(t, "--verbose", "--log-level", "debug", "--record", tapes)
	proc.Open(here.root, map[string]any{"initializationOptions": map[string]any{"providers": map[string]any{"opt": map[string]any{"api": "openai-chat", "url": provider.URL + "/angry", "key": p.put("initializationOptions"), "models": map[string]any{"m": map[string]any{}}}}}})
	proc.Await(0, "the start", fake.Ready())
	proc.Call("providers/login", map[string]any{"provider": "file"})
	proc.Call("providers/loginInput", map[string]any{"provider": "file", "data": map[string]any{"api-key": p.put("a login")}})
	prompt := func(text, model string) {
		mark := proc.Mark()
		proc.Call("chat/prompt", map[string]any{"chatId": "c", "message": text, "model": model, "trust": true})
		proc.Await(mark, "the end of "+text+" "+model, fake.Finished())
	}
	prompt("look", "mock/m")
	for _, provider := range []string{"angry", "file", "env", "rc", "gone", "proxied", "local", "opt", "fromenv"} {
		prompt("fail", provider+"/m")
	}
	for _, command := range []string{"/config", "/doctor", "/prompt-show", "/context", "/costs", "/export " + filepath.Join(home, "out.json"), "/debug-chat " + filepath.Join(home, "out.jsonl")} {
		prompt(command, "mock/m")
	}
	proc.Call("chat/open", map[string]any{"chatId": "c"})
	proc.Call("providers/list", map[string]any{})
	heard := ""
	for _, m := range proc.Since(0) {
		heard += m.String() + "\n"
	}
	shutDown(t, proc)

	seen := map[string]string{"what the client was told": heard, "the log": proc.stderr.String()}
	for _, args := range [][]string{
		{"models"},
		{"models", "--json"},
		{"doctor"},
		{"config"},
		{"config", "show"},
		{"read-chat"},
		{"read-chat", "c"},
		{"--verbose", "--log-level", "debug", "exec", "--model", "angry/m", "fail"},
		{"exec", "--json", "--approve", "all", "look"},
	} {
		out, errOut, _ := runProgram(t, here, "", args...)
		seen["eca "+strings.Join(args, " ")] = out + errOut
	}
	own := regexp.MustCompile(`^(config|\.netrc|ws)`)
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(home, path)
		if err != nil || d.IsDir() || own.MatchString(rel) || filepath.Base(path) == "credentials.json" {
			return err // the user keeps secrets there
		}
		data, err := os.ReadFile(path)
		seen[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range seen {
		p.check(t, where, text)
	}
	// The test is effective: each text was written, and has the values that are not secret.
	for where, words := range map[string][]string{
		"what the client was told": {"[REDACTED]", "I do not know", "MY_SERVICE_TOKEN=", "USER=ada", "providers.mock.key", "providers.angry.url"},
		"the log":                  {"rpc received", "rpc sent", "chat/prompt", "MY_SERVICE_TOKEN="},
		"out.json":                 {"MY_SERVICE_TOKEN=", "system_prompt"}, "out.jsonl": {"MY_SERVICE_TOKEN=", "I looked."},
		filepath.Join("tapes", "c.yaml"): {"shell_command", "I looked."},
		"eca models":                     {"mock"},
	} {
		for _, word := range words {
			if !strings.Contains(seen[where], word) {
				t.Errorf("there is no %q in %s (%d bytes)", word, where, len(seen[where]))
			}
		}
	}
	stored := 0
	for where, text := range seen {
		if strings.HasPrefix(where, "state") && strings.Contains(text, "MY_SERVICE_TOKEN=") {
			stored++
		}
	}
	if stored == 0 {
		t.Error("the store does not have what the command printed")
	}
	recorded := 0
	for where, text := range seen {
		if strings.Contains(where, filepath.Join("artifacts", "sha256")) && strings.Contains(text, "MY_SERVICE_TOKEN=") {
			recorded++
		}
	}
	if recorded == 0 {
		t.Error("the journal does not have what the command printed")
	}
}
