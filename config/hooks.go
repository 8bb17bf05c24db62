package config

// Hook is the value of hooks.<name> (eca-features.md 18.1). extensions/hooks interprets and checks
// it.
type Hook struct {
	Type        string       `json:"type" enum:"sessionStart sessionEnd chatStart chatEnd chatStatusChanged subagentStart preRequest postRequest subagentPostRequest preToolCall postToolCall preCompact postCompact prePrompt postPrompt" doc:"The event."`
	Description string       `json:"description" doc:"A description of the hook."`
	Actions     []HookAction `json:"actions" doc:"The actions that it runs, in this order." each:"A script: either shell or file."`
	Matcher     any          `json:"matcher" types:"string object" doc:"For hooks of tools: a pattern of server__tool, or selectors with argsMatchers. For hooks of compactions: manual or auto."`
	Visible     *bool        `json:"visible" doc:"Whether clients show the hook while it runs (default: true)."`
	RunOnError  bool         `json:"runOnError" doc:"For postToolCall: run after failed calls too."`
	Timeout     *int         `json:"timeout" min:"1" doc:"The time limit of actions without one, in milliseconds."`
}

// HookAction is one action of a hook. Exactly one of Shell and File is set.
type HookAction struct {
	Type    string `json:"type" enum:"shell" doc:"The kind of action. The only one is shell."`
	Shell   string `json:"shell" doc:"The script itself, for bash."`
	File    string `json:"file" doc:"The script's path: absolute, ~/..., or relative to the first workspace folder."`
	Timeout *int   `json:"timeout" min:"1" doc:"Its time limit in milliseconds (default: 30000)."`
}
