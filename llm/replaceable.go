package llm

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// Replaceable says whether another model may answer a request that failed in this way: the model or
// its provider cannot be used at the moment. Mistakes in the request or in the key are not such
// failures.
func (e *Error) Replaceable() bool {
	return e.Retryable() || e.Kind == ErrUnreachable || e.exhausted() || e.unknownModel()
}

// exhausted says that an account has no quota or credit left.
func (e *Error) exhausted() bool {
	return e.Status == http.StatusPaymentRequired || e.says("quota", "billing", "credit balance", "insufficient credit", "insufficient balance", "insufficient funds")
}

// unknownModel says that the provider does not have the model, or not for this account.
func (e *Error) unknownModel() bool {
	switch {
	case e.Page || e.Kind != ErrBadRequest && e.Kind != ErrAuth && e.Kind != ErrUnknown:
		return false
	case e.Status == http.StatusNotFound || e.says("model_not_found"):
		return true
	}
	return e.says("model") && e.says("not found", "not exist", "unknown model", "no such model", "invalid model", "deprecated", "decommissioned", "not have access")
}

// says searches what the provider answered; Message also has eca's own advice.
func (e *Error) says(signs ...string) bool {
	text := strings.ToLower(cmp.Or(e.Body, e.Message))
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}
