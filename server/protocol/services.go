package protocol

// MCPParams name a server (eca-protocol.md 4.10).
type MCPParams struct {
	Name Text `json:"name"`
}

// MCPServerParams of mcp/addServer and mcp/updateServer (eca-protocol.md 4.10). Exactly one of
// Command and URL is set when a server is added. Fields that are absent in an update keep their
// values.
type MCPServerParams struct {
	Name         Text              `json:"name"`
	Command      Text              `json:"command"`
	Args         *List[string]     `json:"args"`
	Env          map[string]string `json:"env"`
	URL          Text              `json:"url"`
	Headers      map[string]string `json:"headers"`
	ClientID     Text              `json:"clientId"`
	ClientSecret Text              `json:"clientSecret"`
	OAuthPort    Number            `json:"oauthPort"`
	AuthScope    Text              `json:"authScope"`
	Disabled     Flag              `json:"disabled"`
	Scope        Text              `json:"scope"` // global (the default) or workspace
	WorkspaceURI Text              `json:"workspaceUri"`
}

// MCPServer is a configured MCP server: the params of its tool/serverUpdated, always complete
// (eca-protocol.md 5.2), and the server in the results of eca-protocol.md 4.10.
type MCPServer struct {
	Type     string    `json:"type"` // mcp
	Name     string    `json:"name"`
	Status   string    `json:"status"`
	Command  string    `json:"command,omitempty"`
	Args     *[]string `json:"args,omitempty"` // with Command only
	URL      string    `json:"url,omitempty"`
	Disabled bool      `json:"disabled"`
	HasAuth  bool      `json:"hasAuth"`

	Tools        *[]ServerTool     `json:"tools,omitempty"` // this and the fields below are set if the server runs or reconnects
	Prompts      *[]ServerPrompt   `json:"prompts,omitempty"`
	Resources    *[]ServerResource `json:"resources,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Error        string            `json:"error,omitempty"` // an extension: why it failed, or what it needs
}

// ServerPrompt is a prompt of an MCP server, under the name that the server uses (eca-protocol.md
// 5.2).
type ServerPrompt struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Arguments   []CommandArgument `json:"arguments"`
}

// ServerResource is a resource of an MCP server (eca-protocol.md 5.2).
type ServerResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
}

// MCPAddResult (eca-protocol.md 4.10).
type MCPAddResult struct {
	Server *MCPServer   `json:"server,omitempty"`
	Error  *WindowError `json:"error,omitempty"`
}

// MCPUpdateResult (eca-protocol.md 4.10). Error is an extension, in the form of eca-protocol.md 13.1.
type MCPUpdateResult struct {
	Error *WindowError `json:"error,omitempty"`
}

// MCPRemoveResult (eca-protocol.md 4.10).
type MCPRemoveResult struct {
	Name    string       `json:"name,omitempty"`
	Removed bool         `json:"removed,omitempty"`
	Error   *WindowError `json:"error,omitempty"`
}

// ServerRemoved is tool/serverRemoved (eca-protocol.md 5).
type ServerRemoved struct {
	Name string `json:"name"`
}

// ProviderParams name a provider (eca-protocol.md 4.11).
type ProviderParams struct {
	Provider Text `json:"provider"`
}

// LoginParams (eca-protocol.md 4.11).
type LoginParams struct {
	Provider Text `json:"provider"`
	Method   Text `json:"method"`
}

// LoginInputParams (eca-protocol.md 4.11). The keys of Data are those of LoginField.
type LoginInputParams struct {
	Provider Text            `json:"provider"`
	Data     map[string]Text `json:"data"`
}

// LoginAction is the client's next step (eca-protocol.md 4.11).
type LoginAction struct {
	Action  string        `json:"action"` // choose-method, input, authorize, device-code or done
	Methods []LoginMethod `json:"methods,omitempty"`
	Fields  []LoginField  `json:"fields,omitempty"`
	URL     string        `json:"url,omitempty"`
	Code    string        `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
}

// LoginMethod is one way to log in.
type LoginMethod struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// LoginField is something the user enters.
type LoginField struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Type  string `json:"type"` // secret or text
}

// ProvidersListResult (eca-protocol.md 4.11).
type ProvidersListResult struct {
	Providers []ProviderStatus `json:"providers"`
}

// ProviderStatus (eca-protocol.md 4.11); also the params of providers/updated. It never holds a
// secret.
type ProviderStatus struct {
	ID         string          `json:"id"`
	Label      string          `json:"label,omitempty"`
	Configured bool            `json:"configured"`
	Auth       ProviderAuth    `json:"auth"`
	Login      *ProviderLogin  `json:"login,omitempty"`
	Models     []ProviderModel `json:"models"`
	Settings   map[string]any  `json:"settings,omitempty"`
}

// ProviderAuth describes how eca authenticates to a provider.
type ProviderAuth struct {
	Status    string `json:"status"`           // authenticated, expiring, expired, unauthenticated, local or not-running
	Type      string `json:"type,omitempty"`   // oauth or api-key
	Source    string `json:"source,omitempty"` // config, login or env
	Mode      string `json:"mode,omitempty"`
	ExpiresAt int64  `json:"expiresAt,omitempty"` // seconds since 1970
	EnvVar    string `json:"envVar,omitempty"`
}

// ProviderLogin lists the ways to log in to a provider.
type ProviderLogin struct {
	Methods []LoginMethod `json:"methods"`
}

// ProviderModel is one model of a provider.
type ProviderModel struct {
	ID           string            `json:"id"`
	Capabilities ModelCapabilities `json:"capabilities"`
	Cost         *ModelCost        `json:"cost,omitempty"`
	Settings     map[string]any    `json:"settings,omitempty"`
}

// ModelCapabilities describes what a model can do.
type ModelCapabilities struct {
	Reason    bool `json:"reason"`
	Vision    bool `json:"vision"`
	Tools     bool `json:"tools"`
	WebSearch bool `json:"webSearch"`
	ImageGen  bool `json:"imageGeneration,omitempty"`
}

// ModelCost is in dollars per token, as the reference server sends it.
type ModelCost struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// JobParams name a background job (eca-protocol.md 4.12).
type JobParams struct {
	JobID ID `json:"jobId"`
}

// JobsListResult (eca-protocol.md 4.12); also the params of jobs/updated.
type JobsListResult struct {
	Jobs []Job `json:"jobs"`
}

// Job is a background job (eca-protocol.md 4.12).
type Job struct {
	ID         string  `json:"id"`
	Type       string  `json:"type"`   // shell
	Status     string  `json:"status"` // running, completed, failed or killed
	Label      string  `json:"label"`
	Summary    *string `json:"summary"`
	StartedAt  string  `json:"startedAt"` // ISO 8601
	Elapsed    string  `json:"elapsed"`   // e.g. 5m23s
	ExitCode   *int    `json:"exitCode"`
	ChatID     string  `json:"chatId"`
	ChatLabel  string  `json:"chatLabel"`
	ToolCallID string  `json:"toolCallId,omitempty"`
}

// JobKillResult (eca-protocol.md 4.12).
type JobKillResult struct {
	Killed bool `json:"killed"`
}

// JobOutputResult (eca-protocol.md 4.12). Status and ExitCode are null for an unknown job.
type JobOutputResult struct {
	Lines    []JobLine `json:"lines"`
	Status   *string   `json:"status"`
	ExitCode *int      `json:"exitCode"`
}

// JobLine is one line of a job's output.
type JobLine struct {
	Text   string `json:"text"`
	Stream string `json:"stream"` // stdout or stderr
}
