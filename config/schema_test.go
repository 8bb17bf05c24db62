package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite schema/eca-config.json and the keys in docs/configuration.md")

// Every key is documented, and every key of the reference server exists.
func TestKeys(t *testing.T) {
	for _, mistake := range mistakesInTags() {
		t.Error(mistake)
	}
	keys := withLegacyKeys(newKeys())
	for _, key := range strings.Fields(`
		$schema defaultModel defaultAgent chatRetentionDays autoCompactPercentage includeParentAgentsFiles mcpTimeoutSeconds mcpKeepAliveSeconds
		lspTimeoutSeconds streamIdleTimeoutSeconds connectTimeoutSeconds netrcFile welcomeMessage extraConfigs extraConfigs.[] pureConfig
		prompts.chat prompts.chatTitle prompts.compact prompts.init prompts.skillCreate prompts.completion prompts.rewrite prompts.tools.*
		chat.title chat.defaultTrust chat.autoSyncSystemPrompt chat.defaultAgent
		rules.[].path commands.[].path skills.[].path disabledTools.[]
		toolCall.approval.byDefault toolCall.approval.allow.*.argsMatchers.*.[] toolCall.approval.ask.*.argsMatchers toolCall.approval.deny.*.argsMatchers
		toolCall.readFile.maxLines toolCall.shellCommand.path toolCall.shellCommand.args.[] toolCall.shellCommand.summaryMaxLength toolCall.editorNav.enabled
		toolCall.outputTruncation.lines toolCall.outputTruncation.sizeKb
		customTools.*.description customTools.*.command customTools.*.schema
		hooks.*.type hooks.*.matcher hooks.*.visible hooks.*.description hooks.*.runOnError
		hooks.*.actions.[].type hooks.*.actions.[].shell hooks.*.actions.[].file hooks.*.actions.[].timeout
		mcpServers.*.command mcpServers.*.args.[] mcpServers.*.env.* mcpServers.*.url mcpServers.*.headers.* mcpServers.*.disabled
		mcpServers.*.clientId mcpServers.*.clientSecret mcpServers.*.oauthPort mcpServers.*.clientName mcpServers.*.authScope
		index.ignoreFiles.[].type index.repoMap.maxTotalEntries index.repoMap.maxEntriesPerDir
		completion.model rewrite.model rewrite.fullFileMaxLines
		variantsByModel.*.variants variantsByModel.*.excludeProviders.[] variantsByModel.*.api
		plugins.*.source plugins.*.commit plugins.install.[]
		remote.enabled remote.host remote.bindHost remote.port remote.password remote.tls.certFile remote.tls.keyFile remote.tls.certUrl remote.tls.keyUrl
		network.caCertFile network.clientCert network.clientKey network.clientKeyPassphrase otlp.*
		providers.*.api providers.*.url providers.*.key providers.*.keyRc providers.*.auth.url providers.*.auth.clientId
		providers.*.completionUrlRelativePath providers.*.thinkTagStart providers.*.thinkTagEnd providers.*.httpClient.version
		providers.*.extraHeaders.* providers.*.fetchModels providers.*.requiresAuth
		providers.*.retry.maxRetries providers.*.retry.prematureStopMaxRetries providers.*.retry.maxAutoContinues providers.*.retry.baseDelayMs
		providers.*.retry.backoffMultiplier providers.*.retry.maxDelayMs
		providers.*.retryRules.[].status providers.*.retryRules.[].errorPattern providers.*.retryRules.[].label
		providers.*.rateLimitMaxWaitSeconds providers.*.cacheRetention
		providers.*.models.*.modelName providers.*.models.*.extraPayload providers.*.models.*.extraHeaders.* providers.*.models.*.reasoningHistory
		providers.*.models.*.imageInput providers.*.models.*.limit.context providers.*.models.*.limit.output
		providers.*.models.*.cost.input providers.*.models.*.cost.output providers.*.models.*.cost.cacheRead providers.*.models.*.cost.cacheWrite
		providers.*.models.*.variants.*.*
		agent.*.inherit agent.*.mode agent.*.spawnableBy agent.*.description agent.*.systemPrompt agent.*.prompts.chat agent.*.prompts.tools.*
		agent.*.defaultModel agent.*.variant agent.*.maxSteps agent.*.disabledTools agent.*.autoCompactPercentage agent.*.toolCall.approval.byDefault`) {
		if at := keys.lookup(strings.Split(key, ".")); at == nil || at.deprecated {
			t.Errorf("%s is not a key", key)
		}
	}
	for _, key := range strings.Fields(`
		behavior defaultBehavior chat.defaultBehavior chat.welcomeMessage compactPrompt compactPromptFile completion.systemPrompt completion.systemPromptFile
		rewrite.systemPrompt rewrite.systemPromptFile agent.*.systemPromptFile behavior.*.mode providers.*.requiresAuth? toolCall.manualApproval`) {
		at := keys.lookup(strings.Split(key, "."))
		if at == nil || !at.deprecated && key != "behavior.*.mode" {
			t.Errorf("%s of earlier versions is not in the schema", key)
		}
	}
}

// mistakesInTags returns what is wrong with the tags of keys, each with the key's name.
func mistakesInTags() (mistakes []string) {
	wrong := func(text string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(text, args...)) }
	keys := withLegacyKeys(newKeys())
	keys.each(nil, func(path []string, k *key) {
		if strings.TrimSpace(k.doc()) == "" && !k.deprecated && !keys.lookup(path[:1]).deprecated && path[len(path)-1] != "[]" && path[len(path)-1] != "*" {
			wrong("the field of the key %s has no tag doc, which says what it is for", strings.Join(path, "."))
		}
		if !slices.Contains([]string{"", "safe", "paths", "stricter"}, k.tag.Get("trust")) {
			wrong("%s: the tag trust is safe, paths or stricter", strings.Join(path, "."))
		}
		numeric := slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64}, k.typ.Kind())
		if least, most := k.limit("min"), k.limit("max"); least != nil && !numeric || most != nil && least == nil {
			wrong("%s: min and max limit numbers, and max needs min", strings.Join(path, "."))
		}
		if len(k.types) == 0 && k.typ.Kind() != reflect.Interface {
			wrong("%s: no type", strings.Join(path, "."))
		}
	})
	keys = newKeys()
	keys.each(nil, func(path []string, k *key) {
		object := keys.lookup(path[:len(path)-1])
		if least := k.limit("min"); least == nil || *least <= 0 || k.index == nil || object.typ.FieldByIndex(k.index).Type.Kind() == reflect.Pointer {
			return
		}
		if slices.Contains(path, "*") || slices.Contains(path, "[]") {
			wrong("%s: a key that is not set is 0, which is less than min; make its field a pointer", strings.Join(path, "."))
		} else if _, ok := k.tag.Lookup("default"); !ok {
			wrong("%s: a key that is not set is 0, which is less than min; add the tag default, or make its field a pointer", strings.Join(path, "."))
		}
	})
	return mistakes
}

// The checked-in schema and reference match the code.
func TestKeysAreDocumented(t *testing.T) {
	if len(mistakesInTags()) > 0 {
		t.Fatal("not compared: first correct the keys that TestKeys names")
	}
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join("..", "docs", "configuration.md")
	text := readText(t, page)
	const begin, end = "<!-- keys: go test ./config -update -->\n", "<!-- end of keys -->\n"
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the marks between which the keys are written", page)
	}
	for path, want := range map[string]string{
		filepath.Join("..", "schema", "eca-config.json"): string(schema),
		page: before + begin + reference() + end + after,
	} {
		if *update {
			write(t, path, want)
		} else if diff := cmp.Diff(want, readText(t, path)); diff != "" {
			t.Errorf("%s: run go test ./config -update:\n%s", path, diff)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

// reference is the table of all keys.
func reference() string {
	var out strings.Builder
	out.WriteString("| key | takes | default | what it is for |\n|---|---|---|---|\n")
	values := defaultValues()
	keys := newKeys()
	keys.each(nil, func(path []string, k *key) {
		if last := path[len(path)-1]; last == "*" || last == "[]" {
			return
		}
		takes := strings.ReplaceAll(typeNames(k.types), " or ", ", ")
		words := k.enum()
		if k.elem() != nil {
			words = append(words, k.elem().enum()...)
		}
		if len(words) > 0 {
			takes = "`" + strings.Join(words, "` `") + "`"
		}
		least, most := k.limit("min"), k.limit("max")
		switch {
		case most != nil:
			takes += fmt.Sprintf(" from %v to %v", *least, *most)
		case least != nil:
			takes += fmt.Sprintf(" from %v", *least)
		}
		initial := ""
		if v, ok := valueAt(values, path); ok && !slices.Contains(path, "*") {
			if raw, err := encode(v); err == nil && len(raw) < 60 && !isObject(v) {
				initial = "`" + string(raw) + "`"
			}
		}
		text := k.doc()
		if k.tag.Get("pending") != "" {
			text += " Accepted, but without effect in this version."
		}
		switch keys.trustEffect(path) {
		case safe, paths:
			text += " ¹"
		case stricter:
			text += " ²"
		}
		name := strings.NewReplacer(".[]", "[]", "*", "NAME").Replace(strings.Join(path, "."))
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, takes, initial, strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(text))
	})
	return out.String()
}

func valueAt(v any, path []string) (any, bool) {
	for _, name := range path {
		object, _ := v.(map[string]any)
		sub, found := object[name]
		if !found {
			return nil, false
		}
		v = sub
	}
	return v, true
}

// The schema is valid: the defaults match it, and mistakes do not.
func TestSchemaValidates(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(defaultValues()); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for text, ok := range map[string]bool{
		`{"agent": {"x": {"mode": "primary"}, "y": {"mode": ["primary", "subagent"]}}, "defaultModel": null}`: true,
		`{"plugins": {"eca": {"source": "https://x"}, "install": ["a"]}, "extraConfigs": "x"}`:                true,
		`{"providers": {"a": {"httpClient": "http-1.1", "models": {"m": {"extraPayload": {"x": null}}}}}}`:    true,
		`{"autoCompactPercentage": 101}`:                       false,
		`{"agent": {"x": {"mode": ["secondary"]}}}`:            false,
		`{"providers": {"a": {"api": "x"}}}`:                   false,
		`{"plugins": {"install": "a"}}`:                        false,
		`{"toolCal": {}}`:                                      false,
		`{"chat": {"title": "yes"}}`:                           false,
		`{"toolCall": {"approval": {"byDefault": "perhaps"}}}`: false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !slices.Contains(s.Properties["autoCompactPercentage"].Types, "null") || string(s.Properties["autoCompactPercentage"].Default) != "75" {
		t.Errorf("%+v", s.Properties["autoCompactPercentage"])
	}
}
