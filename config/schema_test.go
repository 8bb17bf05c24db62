package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite schema/eca-config.json")

// The checked-in schema is that of the code.
func TestSchemaIsCurrent(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "schema", "eca-config.json")
	if *update {
		write(t, path, string(want))
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got = []byte(strings.ReplaceAll(string(got), "\r\n", "\n"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go test ./config -update:\n%s", diff)
	}
}

// Every key says what it is for, and every key of the reference server is one.
func TestSchemaKeys(t *testing.T) {
	s, err := newSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range schemaKeys(s, nil) {
		if at := schemaAt(s, strings.Split(key, ".")); strings.TrimSpace(at.Description) == "" {
			t.Errorf("%s has no text in docs", key)
		}
	}
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
		if at := schemaAt(s, strings.Split(key, ".")); at == nil || at.Deprecated {
			t.Errorf("%s is not in the schema", key)
		}
	}
	for _, key := range strings.Fields(`
		behavior defaultBehavior chat.defaultBehavior chat.welcomeMessage compactPrompt compactPromptFile completion.systemPrompt completion.systemPromptFile
		rewrite.systemPrompt rewrite.systemPromptFile agent.*.systemPromptFile behavior.*.mode providers.*.requiresAuth? toolCall.manualApproval`) {
		at := schemaAt(s, strings.Split(key, "."))
		if at == nil || !at.Deprecated && key != "behavior.*.mode" {
			t.Errorf("%s of earlier versions is not in the schema", key)
		}
	}
	for _, key := range pending() {
		if schemaAt(s, []string{key}) == nil {
			t.Errorf("%s is no key", key)
		}
	}
}

// The schema is one: the defaults follow it, and mistakes do not.
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
	l, broken := parse("defaults", builtinDefaults())
	if broken != nil {
		t.Fatal(broken)
	}
	if err := resolved.Validate(l.content); err != nil {
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
