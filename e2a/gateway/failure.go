package gateway

import "fmt"

// failure is an error with the code that callers tell it by (e2a.md 6, 9).
type failure struct {
	code    string
	kind    string // what kind of error, for machines
	message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

// Codes of failures.
const (
	codeBadJSON       = "E2A.INVALID_JSON"
	codeUnknownMethod = "E2A.UNKNOWN_METHOD"
	codeBadParams     = "E2A.INVALID_PARAMS"
	codeNotFound      = "E2A.NOT_FOUND"
	codeGone          = "E2A.DISCONNECTED" // it ended before the turn did
	codeAgent         = "E2A.AGENT_ERROR"  // the turn failed
)

func fail(code, format string, args ...any) *failure {
	kinds := map[string]string{codeUnknownMethod: "UnknownMethod", codeBadParams: "InvalidParams", codeNotFound: "NotFound", codeGone: "Disconnected"}
	kind, ok := kinds[code]
	if !ok {
		kind = "AgentError"
	}
	return &failure{code, kind, fmt.Sprintf(format, args...)}
}
