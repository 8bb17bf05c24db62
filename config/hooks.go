package config

// Hook is one hooks.<name> (eca-features 18.1). What it means, and what is wrong with it,
// extensions/hooks says.
type Hook struct {
	Type        string       `json:"type"` // the event
	Description string       `json:"description"`
	Actions     []HookAction `json:"actions"`
	Matcher     any          `json:"matcher"`    // a string, or an object of selectors
	Visible     *bool        `json:"visible"`    // default: true
	RunOnError  bool         `json:"runOnError"` // of postToolCall: also after a call that failed
	Timeout     *int         `json:"timeout"`    // of actions without one, in milliseconds
}

// HookAction is one action of a hook. Exactly one of Shell and File is set.
type HookAction struct {
	Type    string `json:"type"`    // shell
	Shell   string `json:"shell"`   // a script
	File    string `json:"file"`    // a script's path: absolute, ~/..., or relative to the first workspace folder
	Timeout *int   `json:"timeout"` // in milliseconds; default: 30000
}
