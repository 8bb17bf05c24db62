// Package config turns the user's configuration into one immutable value.
//
// Layers, lowest first (eca-features.md, section 3): built-in defaults, Markdown agents, plugins,
// initializationOptions, ECA_CONFIG, then either the --config-file or the global file followed by
// each workspace folder's .eca/config.json, and the files in extraConfigs. Files are JSON with
// comments. Objects merge deeply, other values replace. Strings may contain ${env:...}, ${file:...}
// and others (docs/configuration.md), which are resolved after merging, so that replaced values are
// neither read nor run.
//
// It guarantees that loading never fails. Broken parts (a file that does not parse, a value of the
// wrong type) are left out and listed in Problems with their file, line and cause; the rest works.
// For every value in use, Origin names its source. A ${cmd:...} runs once until its file changes,
// and its output is a secret. Only EditFile writes a file, and it keeps comments and format. The
// package does not watch files, but lists those to watch (Files). The tags of Config declare every
// key; loading, Findings and Schema use them.
package config

import (
	"cmp"
	"maps"
	"slices"
)

// Config is the effective configuration. It must not be changed. The tag of a field documents it,
// see key. It has more than 25 fields because each top-level key of the configuration is one.
type Config struct {
	Schema                   string                 `json:"$schema" trust:"safe" doc:"Where editors find this schema."`
	Providers                map[string]Provider    `json:"providers" doc:"Providers of models, by name. eca shows names in kebab-case (my-company for myCompany); your own spelling works everywhere." each:"A provider."`
	MCPServers               map[string]MCPServer   `json:"mcpServers" doc:"MCP servers, by name." each:"A server that eca starts (command) or connects to (url). ${...} is resolved when it starts."`
	DefaultModel             string                 `json:"defaultModel" trust:"safe" doc:"The model of new chats, as provider/model. Without it, eca chooses a usable model."`
	FallbackModels           []string               `json:"fallbackModels" doc:"The models that take over a turn, in this order, when its model cannot be used: its rate limit or quota is reached, its provider fails, or the provider does not have it." each:"A model, as provider/model."`
	Models                   Roles                  `json:"models" doc:"Models for requests other than the turns that you start."`
	FetchModels              *bool                  `json:"fetchModels" doc:"Whether eca fetches the providers' lists of models and the public catalogue of models."`
	DefaultAgent             string                 `json:"defaultAgent" default:"code" trust:"safe" doc:"The agent of new chats."`
	Agents                   map[string]Agent       `json:"agent" doc:"Agents, by name. An agent combines a system prompt, tools and rules." each:"An agent."`
	Prompts                  Prompts                `json:"prompts" doc:"Texts for the model."`
	Chat                     Chat                   `json:"chat" doc:"How chats behave."`
	DisabledTools            []string               `json:"disabledTools" trust:"stricter" doc:"Tools the model does not get: names, servers, or patterns of names." each:"A tool's name, a server's, or a pattern."`
	ToolCall                 ToolCall               `json:"toolCall" doc:"Which calls run, and within which limits."`
	Completion               Completion             `json:"completion" doc:"Completions at the cursor."`
	Rewrite                  Rewrite                `json:"rewrite" trust:"safe" doc:"Rewrites of a selection."`
	Rules                    []PathEntry            `json:"rules" trust:"paths" doc:"Rules beside those in the usual folders." each:"A file or folder."`
	Commands                 []PathEntry            `json:"commands" trust:"paths" doc:"Custom commands beside those in the usual folders." each:"A file or folder."`
	Skills                   []PathEntry            `json:"skills" trust:"paths" doc:"Skills beside those in the usual folders." each:"A file or folder."`
	CustomTools              map[string]CustomTool  `json:"customTools" doc:"Tools of your own, by name." each:"A tool that runs a command."`
	Hooks                    map[string]Hook        `json:"hooks" doc:"Scripts that run at events, by name; they run in the order of their names." each:"A hook."`
	Plugins                  Plugins                `json:"plugins" source:"no-plugin" doc:"Plugins: the sources by name, and what to install from them."`
	Remote                   Remote                 `json:"remote" doc:"The server for remote control."`
	Network                  Network                `json:"network" source:"user" doc:"How servers are reached over TLS. A workspace's file cannot set it."`
	Index                    Index                  `json:"index" trust:"safe" pending:"true" doc:"The index of a workspace's files."`
	OTLP                     map[string]any         `json:"otlp" doc:"Exports traces and metrics to an OpenTelemetry collector: properties as OpenTelemetry for Java names them, such as otel.exporter.otlp.endpoint. See docs/telemetry.md." each:"The value of a property."`
	Auth                     Auth                   `json:"auth" doc:"How logins are stored."`
	NetrcFile                string                 `json:"netrcFile" source:"no-plugin" doc:"Where ${netrc:...} and keyRc look. Without it: ~/.netrc, then ~/_netrc."`
	ExtraConfigs             Strings                `json:"extraConfigs" source:"no-plugin" doc:"More configuration files, read in this order. They override all others. Relative paths start at the first workspace folder." each:"A file's path."`
	WelcomeMessage           string                 `json:"welcomeMessage" trust:"safe" doc:"The Markdown text that a new chat shows."`
	PureConfig               bool                   `json:"pureConfig" source:"options" doc:"In initializationOptions only: use nothing but the defaults and these options."`
	Env                      string                 `json:"env" source:"no-plugin" doc:"For test suites that compare traffic: the value test runs background work in a fixed order."`
	VariantsByModel          map[string]VariantRule `json:"variantsByModel" trust:"safe" doc:"Variants of the models whose names match a pattern." each:"The variants, and where they apply."`
	AutoCompactPercentage    int                    `json:"autoCompactPercentage" default:"75" min:"0" max:"100" trust:"safe" doc:"The conversation is compacted when it fills this percentage of the model's context; 0 means never."`
	Compact                  Compact                `json:"compact" doc:"How conversations are compacted."`
	LSP                      LSP                    `json:"lsp" doc:"Language servers, by name: false turns all of them off. They check edits and find definitions where no editor does." each:"A language server. The name of a known one or of its language changes that one."`
	LSPTimeoutSeconds        float64                `json:"lspTimeoutSeconds" default:"30" min:"0" doc:"How long an editor or a language server may take to answer a question about the code. In seconds; 0 turns the limit off."`
	MCPTimeoutSeconds        float64                `json:"mcpTimeoutSeconds" default:"60" min:"0" doc:"How long an MCP server may take to start and to list what it offers. In seconds; 0 turns the limit off."`
	MCPKeepAliveSeconds      float64                `json:"mcpKeepAliveSeconds" default:"30" min:"0" doc:"How often remote MCP servers are pinged. In seconds; 0 means never."`
	ChatRetentionDays        int                    `json:"chatRetentionDays" default:"0" min:"0" source:"user" doc:"How many days a chat and its data are kept after its last change; 0 keeps them forever. Pinned chats are never removed. A workspace's file cannot set it."`
	Budget                   Budget                 `json:"budget" doc:"Limits for spending, in money, tokens or time. A workspace's file can only make it stricter."`
	Journal                  Journal                `json:"journal" doc:"The record of model and tool calls that esrp journal reads."`
	A2A                      A2A                    `json:"a2a" doc:"Options for agents that call eca serve."`
	IncludeParentAgentsFiles bool                   `json:"includeParentAgentsFiles" default:"false" doc:"Read the AGENTS.md files of the folders above the workspace folders too."`
	ClaudeMDFallback         bool                   `json:"claudeMdFallback" default:"true" doc:"Read CLAUDE.md in folders without AGENTS.md."`
	ClaudeFiles              bool                   `json:"claudeFiles" default:"false" source:"user" doc:"Read agents, commands, skills and hooks of Claude Code: .claude in the home and the workspace folders. A workspace's file cannot set it."`

	// Time limits of model requests in seconds; 0 turns a limit off. A provider's own
	// values win.
	TimeLimits
}

// TimeLimits limit a model request, in seconds. Nil means not set here.
type TimeLimits struct {
	ConnectTimeoutSeconds    *float64 `json:"connectTimeoutSeconds" default:"15" min:"0" doc:"How long a connection to a provider may take. In seconds; 0 turns the limit off."`
	FirstByteTimeoutSeconds  *float64 `json:"firstByteTimeoutSeconds" default:"300" min:"0" doc:"How long a provider may take to begin its answer. In seconds; 0 turns the limit off."`
	StreamIdleTimeoutSeconds *float64 `json:"streamIdleTimeoutSeconds" default:"120" min:"0" doc:"How long an answer may pause. In seconds; 0 turns the limit off."`
	RequestTimeoutSeconds    *float64 `json:"requestTimeoutSeconds" default:"3600" min:"0" doc:"How long a whole answer may take. In seconds; 0 turns the limit off."`
}

// Provider is one providers.<name> (eca-features.md 4.1). Names are kebab-case.
type Provider struct {
	API            string            `json:"api" enum:"openai-responses openai openai-chat anthropic google ollama bedrock cassette" doc:"The wire format it speaks."`
	URL            string            `json:"url" doc:"Its address. Without it: the variable <PROVIDER>_API_URL."`
	Key            string            `json:"key" doc:"Its key. Without it: the one entered by logging in, then the variable <PROVIDER>_API_KEY."`
	Path           string            `json:"completionUrlRelativePath" doc:"The path of requests below the address, if it differs from the API's usual path."`
	ThinkStart     string            `json:"thinkTagStart" doc:"The tag that begins reasoning in an answer's text (openai-chat; default: <think>, for google <thought>)."`
	ThinkEnd       string            `json:"thinkTagEnd" doc:"The tag that ends reasoning (default: </think>)."`
	ExtraHeaders   map[string]string `json:"extraHeaders" doc:"Further headers of requests. Those of a model win over those of its provider." each:"A header's value."`
	FetchModels    *bool             `json:"fetchModels" doc:"Whether eca fetches its list of models."`
	RequiresAuth   *bool             `json:"requiresAuth" doc:"Whether it needs a key (default: true, except for servers on this machine)."`
	Models         map[string]Model  `json:"models" doc:"Its models, by the name users choose. Facts that are missing here come from the provider or the catalogue." each:"A model."`
	Auth           ProviderAuth      `json:"auth" doc:"The OAuth 2 server that logs users in, and the client that eca uses there."`
	HTTPClient     HTTPClient        `json:"httpClient" doc:"How it is reached."`
	KeyRC          string            `json:"keyRc" doc:"The netrc entry with its key, as [login@]machine[:port], used if nothing else provides a key."`
	KeyEnv         string            `json:"keyEnv" doc:"A variable with its key, used if nothing else provides one."`
	URLEnv         string            `json:"urlEnv" doc:"A variable with its address, used if nothing else provides one."`
	Retry          Retry             `json:"retry" doc:"How failed requests are retried."`
	RetryRules     []RetryRule       `json:"retryRules" doc:"Errors that eca retries in addition to its own list." each:"An error: what is set must match."`
	RateLimit      *float64          `json:"rateLimitMaxWaitSeconds" min:"0" doc:"How long to wait, in seconds, when the provider reports that its rate limit is reached; 0 does not wait."`
	CacheRetention string            `json:"cacheRetention" enum:"short long" strict:"true" doc:"How long eca asks the provider to keep prompts in its cache."`

	TimeLimits
}

// MCPServer is one mcpServers.<name> (eca-features.md 19). Its strings are unresolved: ${...} is
// resolved when a server starts, so that resolved values are neither shown nor written back.
type MCPServer struct {
	Command      string            `json:"command,omitempty" doc:"The program to start."`
	Args         []string          `json:"args,omitempty" doc:"Its arguments." each:"An argument."`
	Env          map[string]string `json:"env,omitempty" doc:"Its environment, added to eca's own." each:"A variable's value."`
	URL          string            `json:"url,omitempty" doc:"The server's address."`
	Headers      map[string]string `json:"headers,omitempty" doc:"Headers of requests to it." each:"A header's value."`
	ClientID     string            `json:"clientId,omitempty" doc:"The OAuth client, if the login server does not register clients itself; or the https address of a client's metadata."`
	ClientSecret string            `json:"clientSecret,omitempty" doc:"The OAuth client's secret."`
	ClientName   string            `json:"clientName,omitempty" doc:"The name under which eca registers as a client."`
	OAuthPort    int               `json:"oauthPort,omitempty" min:"0" max:"65535" doc:"The port to which a login returns, by https. Without it: a free one, by http."`
	AuthScope    string            `json:"authScope,omitempty" doc:"Where a login counts: global (the default) everywhere, workspace in this workspace only, any other name wherever the same name is set."`
	Disabled     bool              `json:"disabled,omitempty" doc:"Do not start it."`

	// How long a call may be silent, in seconds (0 means 120), and how many calls run at the same time
	// (0 means 64). Both are additions of eca.
	CallTimeoutSeconds float64 `json:"callTimeoutSeconds,omitempty" min:"0" doc:"How long a tool call may run without an answer or a progress report. In seconds; 0 means 120."`
	MaxParallelCalls   int     `json:"maxParallelCalls,omitempty" min:"0" doc:"How many calls of its tools run at the same time; 0 means 64."`
	// ProtocolVersion is the version of MCP to speak; empty means the newest that both sides support.
	// It is an addition of eca.
	ProtocolVersion string `json:"protocolVersion,omitempty" enum:"2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28" doc:"The protocol version to use, if a server announces a version that it does not implement fully. Without it, eca and the server negotiate one."`
}

// Retry is providers.<name>.retry. Nil fields have their defaults.
type Retry struct {
	MaxRetries              *int     `json:"maxRetries" min:"0" doc:"How often one request is retried (default: 10)."`
	PrematureStopMaxRetries *int     `json:"prematureStopMaxRetries" min:"0" doc:"How many of these retries may be for answers that ended before they began (default: 3)."`
	MaxAutoContinues        *int     `json:"maxAutoContinues" min:"0" doc:"How often in a row a model is asked to continue an answer that was cut off (default: 3)."`
	BaseDelayMs             *int     `json:"baseDelayMs" min:"0" doc:"The pause before the first retry, in milliseconds (default: 2000)."`
	BackoffMultiplier       *float64 `json:"backoffMultiplier" min:"1" doc:"How much longer each pause is than the one before (default: 2)."`
	MaxDelayMs              *int     `json:"maxDelayMs" min:"0" doc:"The longest pause in milliseconds (default: 60000)."`
}

// RetryRule is one of providers.<name>.retryRules: errors that are retried, however eca classifies
// them. At least one of Status and ErrorPattern is set.
type RetryRule struct {
	Status       int    `json:"status" min:"0" max:"599" doc:"The HTTP status."`
	ErrorPattern string `json:"errorPattern" doc:"A pattern found in the error's text."`
	Label        string `json:"label" doc:"The text that users see while eca waits for the retry."`
}

// Model is one providers.<name>.models.<model>.
type Model struct {
	ModelName      string                    `json:"modelName" doc:"The provider's name for the model, if it differs from this one."`
	ExtraPayload   map[string]any            `json:"extraPayload" doc:"Keys merged into the body of requests; null removes a key." each:"A key of the body."`
	ExtraHeaders   map[string]string         `json:"extraHeaders" doc:"Further headers of requests. Those of a model win over those of its provider." each:"A header's value."`
	History        string                    `json:"reasoningHistory" enum:"all turn off" strict:"true" doc:"Which earlier reasoning is sent back to the model: all of it, that of the current turn, or none."`
	Reason         *bool                     `json:"reason" doc:"Whether it can reason."`
	ImageInput     *bool                     `json:"imageInput" doc:"Whether it takes images."`
	WebSearch      bool                      `json:"webSearch" doc:"Whether it may search the web with its provider's own tool (default: false), in the wire formats anthropic, openai-responses and google. Each search costs extra; see cost.webSearch."`
	ImageGen       bool                      `json:"imageGeneration" doc:"Whether it may make images with its provider's own tool (default: false), in the wire formats openai-responses and google. Images cost extra."`
	Limit          Limit                     `json:"limit" doc:"Its limits, in tokens."`
	Cost           Cost                      `json:"cost" doc:"Its prices, in dollars per million tokens."`
	Variants       map[string]map[string]any `json:"variants" doc:"Variants of the model, by name: payloads to choose from. An empty payload removes the variant." each:"Keys that the variant merges into the body of requests.|A key of the body."`
	FallbackModels []string                  `json:"fallbackModels" doc:"The fallbackModels of this model; they replace those of the agent and the general ones. An empty list means none." each:"A model, as provider/model."`
}

// VariantRule is one variantsByModel.<pattern> (eca-features.md 6.3).
type VariantRule struct {
	Variants         map[string]map[string]any `json:"variants" doc:"Variants of the model, by name: payloads to choose from. An empty payload removes the variant." each:"Keys that the variant merges into the body of requests.|A key of the body."`
	ExcludeProviders []string                  `json:"excludeProviders" doc:"Providers whose models do not get these variants." each:"A provider's name."`
	API              Strings                   `json:"api" doc:"The wire formats that they apply to; without it, all." each:"A wire format."`
}

// Limit is in tokens; 0 means unknown.
type Limit struct {
	Context int64 `json:"context" min:"0" doc:"The most tokens of request and answer together."`
	Output  int64 `json:"output" min:"0" doc:"The most tokens of an answer."`
}

// Cost is in dollars per million tokens; nil means unknown.
type Cost struct {
	Input      *float64 `json:"input" min:"0" doc:"The price of tokens sent to the model."`
	Output     *float64 `json:"output" min:"0" doc:"The price of tokens in answers."`
	CacheRead  *float64 `json:"cacheRead" min:"0" doc:"The price of tokens read from the cache."`
	CacheWrite *float64 `json:"cacheWrite" min:"0" doc:"The price of tokens written to the cache."`
	WebSearch  *float64 `json:"webSearch" min:"0" doc:"The price of 1000 web searches by the provider, in dollars (default: 10 in the wire formats anthropic and openai-responses, 14 in google)."`
}

// Compact is the compact section.
type Compact struct {
	Model string `json:"model" doc:"The model that writes summaries, as provider/model. Without it: the chat's own."`
}

// Agent is the value of agent.<name>.
type Agent struct {
	Mode                  Strings       `json:"mode" enum:"primary subagent" strict:"true" trust:"safe" doc:"Whether users choose it (primary) or other agents start it (subagent); without it, both." each:"primary or subagent."`
	Description           string        `json:"description" trust:"safe" doc:"A description of its purpose, for other agents."`
	SystemPrompt          string        `json:"systemPrompt" trust:"safe" doc:"Its system prompt; takes precedence over prompts.chat."`
	Prompts               Prompts       `json:"prompts" trust:"safe" doc:"Its own texts for the model."`
	DefaultModel          string        `json:"defaultModel" trust:"safe" doc:"Its model, as provider/model."`
	Variant               string        `json:"variant" trust:"safe" doc:"The variant of its model."`
	FallbackModels        []string      `json:"fallbackModels" doc:"The fallbackModels of this agent's turns; they replace the general ones. An empty list means none." each:"A model, as provider/model."`
	Inherit               string        `json:"inherit" trust:"stricter" doc:"The agent from which it inherits options that it does not set."`
	SpawnableBy           Strings       `json:"spawnableBy" trust:"stricter" doc:"The agents that can start it; without it, all; [] means none." each:"An agent's name."`
	ReadOnly              bool          `json:"readOnly" trust:"stricter" doc:"Whether it is read-only: calls that would change something are denied, whatever toolCall says; commands that only read run; other commands and MCP tools need approval each time."`
	MaxSteps              *int          `json:"maxSteps" min:"1" trust:"stricter" doc:"How many batches of tool calls it may make as a subagent."`
	DisabledTools         []string      `json:"disabledTools" trust:"stricter" doc:"Tools that it does not get. Replaces the general disabledTools." each:"A tool's name, a server's, or a pattern."`
	ToolCall              AgentToolCall `json:"toolCall" doc:"Which of its calls run."`
	AutoCompactPercentage *int          `json:"autoCompactPercentage" min:"0" max:"100" trust:"safe" doc:"Replaces the general autoCompactPercentage for this agent."`
}

// AgentToolCall is an agent's own part of toolCall; nil and empty fields inherit the global values.
type AgentToolCall struct {
	Approval *Approval `json:"approval" doc:"Each key here replaces that of the general rules; keys that are not set stay in effect."`
	Unasked  string    `json:"unasked" enum:"off reads workspace" strict:"true" wrong:"off" trust:"stricter" doc:"Replaces toolCall.unasked for this agent."`
}

// Prompts are texts for the model: templates, see docs/prompts.md.
type Prompts struct {
	Chat        string            `json:"chat" doc:"The system prompt of chats."`
	Compact     string            `json:"compact" doc:"Asks for a summary of the conversation."`
	ChatTitle   string            `json:"chatTitle" doc:"Asks for a chat's title."`
	Init        string            `json:"init" doc:"The prompt of the command /init."`
	SkillCreate string            `json:"skillCreate" doc:"The prompt of the command /skill-create."`
	Completion  string            `json:"completion" doc:"The system prompt of completions."`
	Rewrite     string            `json:"rewrite" doc:"The system prompt of rewrites."`
	Environment string            `json:"environment" doc:"The text about the machine that follows the agent's own prompt."`
	Tools       map[string]string `json:"tools" doc:"Descriptions of tools, by full name, in place of eca's own." each:"A tool's description."`
}

// Journal is the journal section: the record of model and tool calls.
type Journal struct {
	Enabled       bool `json:"enabled" default:"true" doc:"Whether calls are recorded."`
	MaxSizeMb     int  `json:"maxSizeMb" default:"1024" min:"0" doc:"How many megabytes records and contents may take; the oldest are removed first. 0 means no limit."`
	RetentionDays int  `json:"retentionDays" default:"90" min:"0" doc:"How many days records are kept after their segment was sealed; 0 keeps them forever."`
}

// A2A is the a2a section: settings for callers of eca serve.
type A2A struct {
	Push struct {
		Enabled      bool     `json:"enabled" default:"true" doc:"Whether these notifications are sent."`
		AllowHosts   []string `json:"allowHosts" doc:"The only hosts that are notified. Without it: every host on the public internet." each:"A host."`
		DenyHosts    []string `json:"denyHosts" doc:"Hosts that are not notified." each:"A host."`
		PrivateHosts []string `json:"privateHosts" doc:"Hosts and networks outside the public internet that may be notified, also over plain http." each:"A host, an address, or a network such as 10.0.0.0/8."`
	} `json:"push" doc:"Notifications about tasks, sent to addresses that callers name. A host includes its subdomains."`
}

// Chat is the chat section.
type Chat struct {
	Title                bool   `json:"title" default:"true" trust:"safe" doc:"Whether a model writes the titles of chats."`
	DefaultTrust         bool   `json:"defaultTrust" default:"false" doc:"Whether new chats allow calls that would otherwise need approval."`
	DefaultAgent         string `json:"defaultAgent" trust:"safe" doc:"The agent of new chats; takes precedence over defaultAgent."`
	AutoSyncSystemPrompt bool   `json:"autoSyncSystemPrompt" default:"false" trust:"safe" doc:"Update the system prompt of a running chat whenever its sources change. Otherwise the prompt stays the same, which keeps the provider's cache valid, until the user runs /sync-system-prompt."`
}

// Values of toolCall.unasked.
const (
	UnaskedOff       = "off"       // only calls that a rule, a remembered approval or auto-approve allows
	UnaskedReads     = "reads"     // also commands that only read, in the read-only sandbox
	UnaskedWorkspace = "workspace" // also other commands, in the sandbox of the workspace
)

// unaskedValues are the values of toolCall.unasked, the strictest first.
func unaskedValues() []string { return []string{UnaskedOff, UnaskedReads, UnaskedWorkspace} }

// ToolCall is the toolCall section (docs/permissions.md, docs/sandbox.md).
type ToolCall struct {
	Approval       *Approval      `json:"approval" doc:"Which calls run, need approval, or are denied. Name a tool as server__tool, name a native tool without its server, or name a whole server."`
	Unasked        string         `json:"unasked" default:"reads" enum:"off reads workspace" strict:"true" wrong:"off" trust:"stricter" doc:"Which shell commands run without asking when no rule names them. off: none. reads: those that only read, in the read-only sandbox. workspace: also those that stay in the workspace's sandbox, and file tools that change files of the workspace. A workspace's file can only make it stricter."`
	Sandbox        string         `json:"sandbox" default:"auto" enum:"off auto on required" strict:"true" doc:"Which commands and custom tools run in the sandbox. off: none. auto: those that the user did not approve by hand. on: all, and hooks. required: like on, but nothing runs where the system cannot enforce the sandbox."`
	SandboxNetwork SandboxNetwork `json:"sandboxNetwork" default:"false" doc:"Whether commands that you or your rules allow reach the network if toolCall.sandbox is on or required; as an object, the hosts that sandboxed commands without network reach."`
	SandboxHosts   []string       `json:"sandboxHosts" doc:"Hosts that sandboxed commands without network reach through eca's proxy." each:"A host, *.suffix for all below one, or @npm, @pypi, @go, @crates."`
	SandboxPorts   []int          `json:"sandboxPorts" doc:"Ports of this machine that sandboxed commands without network can reach." each:"A port."`
	SandboxCaches  string         `json:"sandboxCaches" default:"private" enum:"private shared" strict:"true" doc:"The caches of build tools for sandboxed commands that the user did not approve by hand. private: caches of the workspace. shared: yours."`
	Environment    struct {
		Pass     []string `json:"pass" doc:"Variables that programs get although they look like credentials." each:"A name, in which * stands for any text."`
		Withhold []string `json:"withhold" doc:"Variables that programs do not get. This takes precedence over pass." each:"A name, in which * stands for any text."`
	} `json:"environment" doc:"The variables of eca's environment that commands, hooks and custom tools get if the user did not approve them by hand. Without it: all but credentials; commands that only read get only the variables that reading needs."`

	ReadFile struct {
		MaxLines int `json:"maxLines" default:"2000" min:"1" doc:"How many lines one call returns at most."`
	} `json:"readFile" trust:"safe" doc:"The tool read_file."`
	ShellCommand struct {
		Path             string   `json:"path" doc:"The shell. Without it: bash, else sh; PowerShell on Windows."`
		Args             []string `json:"args" doc:"Its arguments before the command." each:"An argument."`
		SummaryMaxLength int      `json:"summaryMaxLength" default:"35" min:"1" doc:"How much of a command its summary shows, in characters."`
	} `json:"shellCommand" doc:"The tool shell_command."`
	WebFetch struct {
		AllowHosts   []string `json:"allowHosts" doc:"The only hosts to fetch pages from. Without it: all." each:"A host."`
		DenyHosts    []string `json:"denyHosts" doc:"Hosts to fetch no pages from." each:"A host."`
		PrivateHosts []string `json:"privateHosts" doc:"Hosts and networks outside the public internet that may be reached: this machine's, or your company's." each:"A host, an address, or a network such as 10.0.0.0/8."`
	} `json:"webFetch" doc:"The tool web_fetch. A host includes its subdomains."`
	EditorNav struct {
		Enabled bool `json:"enabled" default:"true" doc:"Whether these tools are available."`
	} `json:"editorNav" doc:"Tools that ask the editor, or a language server, for definitions, references and symbols."`
	Diagnostics struct {
		Enabled           bool    `json:"enabled" default:"true" doc:"Whether results of edits name the new errors and warnings."`
		EditorWaitSeconds float64 `json:"editorWaitSeconds" default:"1" min:"0" doc:"How long an edit waits for the editor to check it, in seconds."`
		ServerWaitSeconds float64 `json:"serverWaitSeconds" default:"3" min:"0" doc:"How long an edit waits for a language server to check it, in seconds."`
		StartWaitSeconds  float64 `json:"startWaitSeconds" default:"20" min:"0" doc:"How long the first edit waits for a language server to start, in seconds."`
	} `json:"diagnostics" doc:"Errors and warnings that edits cause (docs/diagnostics.md)."`
	OutputTruncation struct {
		Lines  int `json:"lines" default:"2000" min:"1" doc:"The most lines."`
		SizeKb int `json:"sizeKb" default:"50" min:"1" doc:"The most kilobytes."`
	} `json:"outputTruncation" trust:"safe" doc:"How much of a tool's output the model gets; the rest goes into a file."`
}

// Completion is the completion section.
type Completion struct {
	Model string `json:"model" default:"openai/gpt-4.1" trust:"safe" doc:"The model of completions, as provider/model. If this model is unavailable, the default model is used."`
}

// Rewrite is the rewrite section.
type Rewrite struct {
	Model            string `json:"model" doc:"The model of rewrites, as provider/model. Without it: the default model."`
	FullFileMaxLines int    `json:"fullFileMaxLines" default:"2000" min:"0" doc:"The model sees only a part of files with more lines."`
}

// Approval is toolCall.approval. Keys of the maps select tools.
type Approval struct {
	ByDefault string                  `json:"byDefault" default:"ask" enum:"ask allow deny" doc:"The decision on calls that no rule matches."`
	Allow     map[string]ApprovalRule `json:"allow" doc:"Calls that run without asking." each:"The calls of this tool that the rule applies to; all if it is empty."`
	Ask       map[string]ApprovalRule `json:"ask" trust:"stricter" doc:"Calls that need approval." each:"The calls of this tool that the rule applies to; all if it is empty."`
	Deny      map[string]ApprovalRule `json:"deny" trust:"stricter" doc:"Calls that never run. They win over everything." each:"The calls of this tool that the rule applies to; all if it is empty."`
}

// ApprovalRule narrows a selector to calls whose arguments match.
type ApprovalRule struct {
	ArgsMatchers map[string][]string `json:"argsMatchers" doc:"Patterns by argument. The rule applies if one of them matches the whole value of its argument." each:"Patterns for this argument.|A pattern, as in Java."`
}

// UnaskedCommands returns toolCall.unasked for an agent. Unknown values count as off.
func (c *Config) UnaskedCommands(agent string) string {
	value := cmp.Or(c.Agents[agent].ToolCall.Unasked, c.ToolCall.Unasked)
	if !slices.Contains(unaskedValues(), value) {
		return UnaskedOff
	}
	return value
}

// AutoCompact returns the AutoCompactPercentage of an agent.
func (c *Config) AutoCompact(agent string) int {
	if p := c.Agents[agent].AutoCompactPercentage; p != nil {
		return *p
	}
	return c.AutoCompactPercentage
}

// AgentOrDefault returns the name of a primary agent: the given one, else the
// configured default, else code.
func (c *Config) AgentOrDefault(name string) string {
	agent, _ := c.FindAgent(name)
	return agent
}

// FindAgent is like AgentOrDefault. known is true if name was empty or the name of an agent that chats
// can use: a primary one, or code if no other is left.
func (c *Config) FindAgent(name string) (agent string, known bool) {
	// The names of the first published protocol (eca-protocol.md, section 9).
	switch name {
	case "agent", "build":
		name = "code"
	}
	for _, n := range []string{name, c.Chat.DefaultAgent, c.DefaultAgent} {
		if a, ok := c.Agents[n]; ok && n != "" && a.Primary() {
			return n, name == "" || n == name
		}
	}
	return "code", name == "" || name == "code"
}

// Primary reports whether users can choose the agent.
func (a Agent) Primary() bool { return len(a.Mode) == 0 || slices.Contains(a.Mode, "primary") }

// PrimaryAgents lists the agents that users can choose, sorted.
func (c *Config) PrimaryAgents() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Agents)), func(name string) bool { return !c.Agents[name].Primary() })
}

// Spawnable lists the agents that an agent can start as subagents.
func (c *Config) Spawnable(by string) []string {
	var out []string
	for name, a := range c.Agents {
		if a.Subagent() && (a.SpawnableBy == nil || slices.Contains(a.SpawnableBy, by)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Subagent reports whether other agents can start it.
func (a Agent) Subagent() bool { return len(a.Mode) == 0 || slices.Contains(a.Mode, "subagent") }
