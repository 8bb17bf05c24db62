package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// The user can name a provider as the configuration does, and messages use the same spelling.
func TestProviderInTheUsersSpelling(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			http.Error(w, `{"error": {"message": "bad key"}}`, http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"data": [{"id": "m"}]}`))
	}))
	defer srv.Close()
	for _, name := range []string{"my_server2", "MyServer", "my server", "gpu4You", "LiteLLM2", "plain", "a_b-C"} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			provider := `{"api": "openai-chat", "url": "` + srv.URL + `/v1", "requiresAuth": true, "models": {"m": {}}}`
			d := newDaemon(t, `{"providers": {"`+name+`": `+provider+`}, "defaultModel": "`+name+`/m", "agent": {"mine": {"defaultModel": "`+name+`/m"}}}`, nil)
			says := func(what string, err error, want ...string) {
				t.Helper()
				for _, w := range append(want, name) {
					if err == nil || !strings.Contains(err.Error(), w) {
						t.Errorf("%s: %v does not say %q", what, err, w)
					}
				}
			}
			_, err := d.CheckModel(ctx, name+"/m")
			says("without a key", err, "providers."+strings.Trim(quotedKey(name), "."), strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(name))+"_API_KEY")
			if _, err := d.Login(ctx, name, ""); err != nil {
				t.Errorf("login: %v", err)
			}
			_, err = d.CheckKey(ctx, name, map[string]string{"api-key": "wrong"})
			says("a wrong key", err, "does not accept")
			if said, err := d.CheckKey(ctx, name, map[string]string{"api-key": "right"}); err != nil || !strings.Contains(said, name+" accepts") {
				t.Errorf("the right key: %q, %v", said, err)
			}
			if _, err := d.LoginInput(ctx, name, map[string]string{"api-key": "right"}); err != nil {
				t.Fatal(err)
			}
			id, err := d.CheckModel(ctx, name+"/m")
			if err != nil || id == "" {
				t.Errorf("%q, %v", id, err)
			}
			for _, other := range []string{id, strings.ToUpper(name) + "/m", "m"} {
				if got, err := d.CheckModel(ctx, other); err != nil || got != id {
					t.Errorf("%s means %q, %v; not %q", other, got, err, id)
				}
			}
			if got := d.Config().Agents["mine"].DefaultModel; got != id {
				t.Errorf("the agent's default model is %q", got)
			}
			_, err = d.CheckModel(ctx, name+"/mm")
			says("an unknown model", err, "did you mean "+name+"/m?")
			if _, err := d.Config().ValuesAt([]string{"providers", name, "url"}); err != nil {
				t.Errorf("the configuration key with this spelling was not found: %v", err)
			}
			if text := d.Doctor(ctx, true).Markdown(); !strings.Contains(text, "provider "+name+"**") || !strings.Contains(text, name+"/m") {
				t.Errorf("the doctor does not name the provider or its model in this spelling: %s", text)
			}
			if _, err := d.Logout(ctx, name); err != nil {
				t.Errorf("logout: %v", err)
			}
		})
	}
}

// quotedKey is a key as paths of keys write it.
func quotedKey(key string) string {
	if strings.ContainsAny(key, " ") {
		return `"` + key + `"`
	}
	return key
}

// The variables for a provider's key and URL can use the spelling of the configuration file.
func TestVariablesInTheUsersSpelling(t *testing.T) {
	for name, variable := range map[string]string{"my_server2": "MY_SERVER2", "MyServer": "MYSERVER", "myServer": "MY_SERVER"} {
		d := newDaemon(t, `{"providers": {"`+name+`": {"api": "openai-chat", "models": {"m": {}}}}}`, map[string]string{variable + "_API_KEY": "k", variable + "_API_URL": "https://models.example/v1"})
		if _, err := d.CheckModel(context.Background(), name+"/m"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A model's name without a provider means the model of the default model's provider, otherwise of the
// only provider that has it. If several other providers have it, eca reports an error.
func TestModelWithoutItsProvider(t *testing.T) {
	provider := func(models string) string {
		return `{"api": "openai-chat", "url": "http://127.0.0.1:1/v1", "fetchModels": false, "models": {` + models + `}}`
	}
	config := `{"providers": {"a": ` + provider(`"m": {}, "x": {}, "one": {}`) + `, "b_2": ` + provider(`"m": {}, "x": {}`) + `, "c": ` + provider(`"m": {}, "y/z": {}`) + `}, "defaultModel": "%"}`
	for _, c := range []struct{ standard, name, want, wrong string }{
		{"c/m", "m", "c/m", ""},
		{"b_2/m", "m", "b-2/m", ""},
		{"c/m", "one", "a/one", ""},
		{"c/m", "y/z", "c/y/z", ""},
		{"c/m", "x", "", "a/x, b_2/x"},
		{"c/m", "nope", "", "provider/model"},
		{"c/m", "onee", "", "did you mean one?"},
	} {
		d := newDaemon(t, strings.Replace(config, "%", c.standard, 1), nil)
		got, err := d.CheckModel(context.Background(), c.name)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s, with the default %s: %q, %v", c.name, c.standard, got, err)
		}
	}
}

// A custom tool cannot have the name of a native tool, even of one that this client does not support.
func TestNamesOfToolsAreTaken(t *testing.T) {
	custom := map[string]any{}
	for _, name := range testkit.DocumentedTools(t, "..") {
		custom[name] = map[string]any{"description": "d", "command": "true", "schema": map[string]any{}}
	}
	raw, err := json.Marshal(map[string]any{"customTools": custom})
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "{}", nil)
	d.Configure(raw, []string{t.TempDir()})
	for name := range custom {
		if !strings.Contains(fmt.Sprint(d.Config().Problems), "customTools."+name+" is left out: a tool of eca has this name") {
			t.Errorf("a custom tool with the name %s was not refused", name)
		}
	}
}
