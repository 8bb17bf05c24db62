// Package config turns the user's configuration into one immutable value.
//
// Layers, lowest first (eca-features, section 3): built-in defaults, Markdown agents,
// plugins, initializationOptions, ECA_CONFIG, then either the --config-file or the global
// file followed by each workspace folder's .eca/config.json, and the files in extraConfigs.
// Files are JSON with comments. Objects merge deeply, everything else replaces. Strings may
// contain ${env:...}, ${file:...} and others (docs/configuration.md), which are resolved
// when all is merged: what is replaced is neither read nor run.
//
// It guarantees that loading never fails: what is broken (a file that does not
// parse, a value of the wrong type) is left out, named in Problems with its file,
// line and cause, and the rest works. For every value that is used, Origin says
// where it came from. A ${cmd:...} runs once until its file changes, and what it prints is
// a secret. It writes a file only through EditFile, which keeps comments and format. It
// does not watch files, but names those to watch. Check and Schema know every key; loading
// does not look at their texts.
package config

import (
	"cmp"
	"slices"
)

// Config is the effective configuration. It must not be changed.
type Config struct {
	Providers      map[string]Provider   `json:"providers"`
	MCPServers     map[string]MCPServer  `json:"mcpServers"`
	DefaultModel   string                `json:"defaultModel"` // provider/model; empty: chosen from what is usable
	FetchModels    *bool                 `json:"fetchModels"`  // default of the providers', and whether to fetch the public catalogue of models
	DefaultAgent   string                `json:"defaultAgent"`
	Agents         map[string]Agent      `json:"agent"`
	Prompts        Prompts               `json:"prompts"`
	Chat           Chat                  `json:"chat"`
	DisabledTools  []string              `json:"disabledTools"`
	ToolCall       ToolCall              `json:"toolCall"`
	Completion     Completion            `json:"completion"`
	Rewrite        Rewrite               `json:"rewrite"`
	Rules          []PathEntry           `json:"rules"`
	Commands       []PathEntry           `json:"commands"`
	Skills         []PathEntry           `json:"skills"`
	CustomTools    map[string]CustomTool `json:"customTools"`
	Hooks          map[string]Hook       `json:"hooks"`
	Plugins        Plugins               `json:"plugins"`
	Remote         Remote                `json:"remote"`
	Network        Network               `json:"network"`
	Index          Index                 `json:"index"`
	OTLP           map[string]any        `json:"otlp"` // by name of the exporter's property
	Auth           Auth                  `json:"auth"`
	NetrcFile      string                `json:"netrcFile"` // empty: ~/.netrc, then ~/_netrc
	ExtraConfigs   Strings               `json:"extraConfigs"`
	WelcomeMessage string                `json:"welcomeMessage"`
	PureConfig     bool                  `json:"pureConfig"`
	Env            string                `json:"env"` // EnvTest for test suites

	// VariantsByModel gives variants to models whose name matches a pattern.
	VariantsByModel map[string]VariantRule `json:"variantsByModel"`

	// AutoCompactPercentage is how full the context may be before the conversation is
	// compacted; 0 is never. See AutoCompact.
	AutoCompactPercentage int     `json:"autoCompactPercentage"`
	Compact               Compact `json:"compact"`

	// LSPTimeoutSeconds bounds what the editor is asked about code; 0 is no limit.
	LSPTimeoutSeconds float64 `json:"lspTimeoutSeconds"`

	// Time limits of MCP servers, in seconds: of their start and lists, and between pings;
	// 0 turns the second off.
	MCPTimeoutSeconds   float64 `json:"mcpTimeoutSeconds"`
	MCPKeepAliveSeconds float64 `json:"mcpKeepAliveSeconds"`

	// ChatRetentionDays is how long chats are kept; 0 is forever.
	ChatRetentionDays int `json:"chatRetentionDays"`

	Journal Journal `json:"journal"`

	A2A A2A `json:"a2a"`

	// IncludeParentAgentsFiles says that AGENTS.md of the folders above counts too.
	IncludeParentAgentsFiles bool `json:"includeParentAgentsFiles"`
	// ClaudeMDFallback says that CLAUDE.md counts in folders without AGENTS.md.
	ClaudeMDFallback bool `json:"claudeMdFallback"`
	// ClaudeFiles says that agents, commands, skills and hooks of Claude Code count.
	ClaudeFiles bool `json:"claudeFiles"`

	// Time limits of model requests in seconds; 0 turns a limit off. A provider's own
	// values win.
	TimeLimits
}

// EnvTest is for suites that compare traffic (eca-recorded): what happens in the
// background happens in a fixed order, and deltas are shown as they came, never merged.
const EnvTest = "test"

// TimeLimits bound a model request, in seconds. Nil means: not set here.
type TimeLimits struct {
	ConnectTimeoutSeconds    *float64 `json:"connectTimeoutSeconds"`
	FirstByteTimeoutSeconds  *float64 `json:"firstByteTimeoutSeconds"`
	StreamIdleTimeoutSeconds *float64 `json:"streamIdleTimeoutSeconds"`
	RequestTimeoutSeconds    *float64 `json:"requestTimeoutSeconds"`
}

// Provider is one providers.<name> (eca-features 4.1). Names are kebab-case.
type Provider struct {
	API          string            `json:"api"`
	URL          string            `json:"url"`
	Key          string            `json:"key"`
	Path         string            `json:"completionUrlRelativePath"`
	ThinkStart   string            `json:"thinkTagStart"` // of openai-chat; default: <think>
	ThinkEnd     string            `json:"thinkTagEnd"`   // default: </think>
	ExtraHeaders map[string]string `json:"extraHeaders"`
	FetchModels  *bool             `json:"fetchModels"`  // default: true
	RequiresAuth *bool             `json:"requiresAuth"` // default: true; false for local servers without a key
	Models       map[string]Model  `json:"models"`
	Auth         ProviderAuth      `json:"auth"`
	HTTPClient   HTTPClient        `json:"httpClient"`
	KeyRC        string            `json:"keyRc"`  // [login@]machine[:port] in a netrc file; the last place to look for a key but KeyEnv
	KeyEnv       string            `json:"keyEnv"` // an environment variable; the last place to look for a key
	URLEnv       string            `json:"urlEnv"` // the same for the url
	Retry        Retry             `json:"retry"`
	RetryRules   []RetryRule       `json:"retryRules"`
	RateLimit    *float64          `json:"rateLimitMaxWaitSeconds"`

	// CacheRetention is how long the provider is asked to keep prompts in its cache: short
	// or long (docs/models.md).
	CacheRetention string `json:"cacheRetention"`

	TimeLimits
}

// MCPServer is one mcpServers.<name> (eca-features 19). Its strings are as they were
// written: ${...} is resolved when a server is started, so that it is neither shown nor
// written back resolved.
type MCPServer struct {
	Command      string            `json:"command,omitempty"`
	Args         []string          `json:"args,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	URL          string            `json:"url,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	ClientID     string            `json:"clientId,omitempty"`
	ClientSecret string            `json:"clientSecret,omitempty"`
	ClientName   string            `json:"clientName,omitempty"`
	OAuthPort    int               `json:"oauthPort,omitempty"`
	AuthScope    string            `json:"authScope,omitempty"`
	Disabled     bool              `json:"disabled,omitempty"`

	// How long a call may say nothing, in seconds (0 is 120), and how many calls run at the
	// same time (0 is 64). Additions of ours.
	CallTimeoutSeconds float64 `json:"callTimeoutSeconds,omitempty"`
	MaxParallelCalls   int     `json:"maxParallelCalls,omitempty"`
	// ProtocolVersion is the version of MCP to speak; empty: what both sides know. An
	// addition of ours.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
}

// Retry is providers.<name>.retry. What is nil has its default.
type Retry struct {
	MaxRetries              *int     `json:"maxRetries"`              // repetitions of one request: 10
	PrematureStopMaxRetries *int     `json:"prematureStopMaxRetries"` // of them, for answers that ended or stayed away before they began: 3
	MaxAutoContinues        *int     `json:"maxAutoContinues"`        // how often in a row a model is asked to go on with an answer that was cut: 3
	BaseDelayMs             *int     `json:"baseDelayMs"`
	BackoffMultiplier       *float64 `json:"backoffMultiplier"`
	MaxDelayMs              *int     `json:"maxDelayMs"`
}

// RetryRule is one of providers.<name>.retryRules: errors that are worth another try,
// whatever eca takes them for. At least one of Status and ErrorPattern is set.
type RetryRule struct {
	Status       int    `json:"status"`       // of HTTP; 0: any
	ErrorPattern string `json:"errorPattern"` // found in the error's text; as in Java
	Label        string `json:"label"`        // what the user is told while waiting
}

// Model is one providers.<name>.models.<model>.
type Model struct {
	ModelName    string                    `json:"modelName"` // what the provider calls it, if not the key
	ExtraPayload map[string]any            `json:"extraPayload"`
	ExtraHeaders map[string]string         `json:"extraHeaders"`
	History      string                    `json:"reasoningHistory"` // what reasoning is sent back: all (default), of the turn, or off
	Reason       *bool                     `json:"reason"`           // can it reason
	ImageInput   *bool                     `json:"imageInput"`       // does it take images
	Limit        Limit                     `json:"limit"`
	Cost         Cost                      `json:"cost"`
	Variants     map[string]map[string]any `json:"variants"`
}

// VariantRule is one variantsByModel.<pattern> (eca-features 6.3).
type VariantRule struct {
	Variants         map[string]map[string]any `json:"variants"`
	ExcludeProviders []string                  `json:"excludeProviders"`
	API              Strings                   `json:"api"` // empty: any
}

// Limit is in tokens; 0 is unknown.
type Limit struct {
	Context int64 `json:"context"`
	Output  int64 `json:"output"`
}

// Cost is in dollars per million tokens; nil is unknown.
type Cost struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cacheRead"`
	CacheWrite *float64 `json:"cacheWrite"`
}

// Compact is the compact section.
type Compact struct {
	Model string `json:"model"` // writes the summaries; empty: the chat's own
}

// Agent is one agent.<name>.
type Agent struct {
	Mode          Strings       `json:"mode"` // primary, subagent or both; empty: both
	Description   string        `json:"description"`
	SystemPrompt  string        `json:"systemPrompt"`
	Prompts       Prompts       `json:"prompts"`
	DefaultModel  string        `json:"defaultModel"`
	Variant       string        `json:"variant"`
	Inherit       string        `json:"inherit"`     // the agent this one is made from
	SpawnableBy   Strings       `json:"spawnableBy"` // agents that may start it as a subagent; empty: all
	ReadOnly      bool          `json:"readOnly"`    // its calls change nothing: what may is denied
	MaxSteps      *int          `json:"maxSteps"`    // of a subagent: batches of tool calls; nil: no limit
	DisabledTools []string      `json:"disabledTools"`
	ToolCall      AgentToolCall `json:"toolCall"`

	AutoCompactPercentage *int `json:"autoCompactPercentage"` // nil inherits the global one
}

// AgentToolCall is an agent's own part of toolCall; nil and empty inherit the global one.
type AgentToolCall struct {
	Approval *Approval `json:"approval"`
	Unasked  string    `json:"unasked"`
}

// Prompts are texts for the model: templates, see docs/prompts.md.
type Prompts struct {
	Chat        string `json:"chat"`
	Compact     string `json:"compact"`
	ChatTitle   string `json:"chatTitle"`
	Init        string `json:"init"`        // what the command /init asks for
	SkillCreate string `json:"skillCreate"` // what the command /skill-create asks for
	Completion  string `json:"completion"`
	Rewrite     string `json:"rewrite"`
	// Environment tells the model about the machine, behind the agent's own prompt.
	Environment string            `json:"environment"`
	Tools       map[string]string `json:"tools"` // descriptions by full tool name
}

// Journal is the journal section: the record of model and tool calls.
type Journal struct {
	Enabled       bool `json:"enabled"`
	MaxSizeMb     int  `json:"maxSizeMb"`     // of records and contents together; 0 is no limit
	RetentionDays int  `json:"retentionDays"` // of sealed segments; 0 is forever
}

// A2A is the a2a section: what callers of eca serve can have.
type A2A struct {
	Push struct {
		Enabled      bool     `json:"enabled"`
		AllowHosts   []string `json:"allowHosts"` // empty: all
		DenyHosts    []string `json:"denyHosts"`
		PrivateHosts []string `json:"privateHosts"` // hosts and networks that may be private, and without TLS
	} `json:"push"`
}

// Chat is the chat section.
type Chat struct {
	Title        bool   `json:"title"`
	DefaultTrust bool   `json:"defaultTrust"`
	DefaultAgent string `json:"defaultAgent"`

	// AutoSyncSystemPrompt says that a chat's system prompt follows what it is made of.
	AutoSyncSystemPrompt bool `json:"autoSyncSystemPrompt"`
}

// Values of toolCall.unasked.
const (
	UnaskedOff       = "off"       // only what a rule, memory or the user allows
	UnaskedReads     = "reads"     // also commands that only read, in the read-only sandbox
	UnaskedWorkspace = "workspace" // also other commands, in the sandbox of the workspace
)

// unaskedValues are the values of toolCall.unasked, the strictest first.
func unaskedValues() []string { return []string{UnaskedOff, UnaskedReads, UnaskedWorkspace} }

// ToolCall is the toolCall section.
type ToolCall struct {
	Approval *Approval `json:"approval"`

	// Unasked says which commands run without a question although no rule of the user's
	// names them: off, reads or workspace (docs/permissions.md).
	Unasked string `json:"unasked"`

	// Sandbox says when commands are bound: off, auto, on or required (docs/sandbox.md).
	Sandbox string `json:"sandbox"`
	// SandboxNetwork says what of the network commands reach that are bound without it.
	SandboxNetwork SandboxNetwork `json:"sandboxNetwork"`
	// SandboxHosts are hosts that they reach through eca's proxy, as SandboxNetwork.Allow;
	// SandboxPorts ports of this machine that they reach on their loopback.
	SandboxHosts []string `json:"sandboxHosts"`
	SandboxPorts []int    `json:"sandboxPorts"`
	// SandboxCaches says whether bound commands that nobody approved by hand have build tools'
	// caches of their own (private) or write to the user's (shared).
	SandboxCaches string `json:"sandboxCaches"`
	// Environment names variables of eca's environment that commands get which nobody approved
	// by hand, or do not get, in which * stands for any text (docs/sandbox.md).
	Environment struct {
		Pass     []string `json:"pass"`
		Withhold []string `json:"withhold"`
	} `json:"environment"`

	ReadFile struct {
		MaxLines int `json:"maxLines"`
	} `json:"readFile"`
	ShellCommand struct {
		Path             string   `json:"path"`
		Args             []string `json:"args"`
		SummaryMaxLength int      `json:"summaryMaxLength"`
	} `json:"shellCommand"`
	WebFetch struct {
		AllowHosts   []string `json:"allowHosts"` // empty: all
		DenyHosts    []string `json:"denyHosts"`
		PrivateHosts []string `json:"privateHosts"` // hosts and networks that may be private
	} `json:"webFetch"`
	EditorNav struct {
		Enabled bool `json:"enabled"`
	} `json:"editorNav"`
	OutputTruncation struct {
		Lines  int `json:"lines"`
		SizeKb int `json:"sizeKb"`
	} `json:"outputTruncation"`
}

// Completion is the completion section.
type Completion struct {
	Model string `json:"model"` // provider/model; empty: the default model
}

// Rewrite is the rewrite section.
type Rewrite struct {
	Model            string `json:"model"`            // provider/model; empty: the default model
	FullFileMaxLines int    `json:"fullFileMaxLines"` // of larger files the model sees a part
}

// Approval is toolCall.approval. Keys of the maps select tools.
type Approval struct {
	ByDefault string                  `json:"byDefault"` // ask, allow or deny
	Allow     map[string]ApprovalRule `json:"allow"`
	Ask       map[string]ApprovalRule `json:"ask"`
	Deny      map[string]ApprovalRule `json:"deny"`
}

// ApprovalRule narrows a selector to calls whose arguments match.
type ApprovalRule struct {
	ArgsMatchers map[string][]string `json:"argsMatchers"`
}

// UnaskedCommands returns toolCall.unasked of an agent. What is not a known value counts as
// off.
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

// FindAgent is AgentOrDefault that says whether the name was that of a primary agent, or
// empty.
func (c *Config) FindAgent(name string) (agent string, known bool) {
	// The seed protocol's names (eca-protocol, section 9).
	switch name {
	case "agent", "build":
		name = "code"
	}
	for _, n := range []string{name, c.Chat.DefaultAgent, c.DefaultAgent} {
		if a, ok := c.Agents[n]; ok && a.Primary() {
			return n, name == "" || n == name
		}
	}
	return "code", name == ""
}

// Primary says whether users can choose the agent.
func (a Agent) Primary() bool { return len(a.Mode) == 0 || slices.Contains(a.Mode, "primary") }

// Spawnable lists the agents that an agent can start as subagents.
func (c *Config) Spawnable(by string) []string {
	var out []string
	for name, a := range c.Agents {
		if a.Subagent() && (len(a.SpawnableBy) == 0 || slices.Contains(a.SpawnableBy, by)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Subagent says whether other agents can start it.
func (a Agent) Subagent() bool { return len(a.Mode) == 0 || slices.Contains(a.Mode, "subagent") }
