package llm

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// Replaceable reports whether another model may answer the failed request, because the model or its
// provider cannot be used at the moment. It is false for mistakes in the request or the key.
func (e *Error) Replaceable() bool {
	return e.Retryable() || e.Kind == ErrUnreachable || e.exhausted() || e.unknownModel()
}

// exhausted reports whether the account has no quota or credit left.
func (e *Error) exhausted() bool {
	return e.Status == http.StatusPaymentRequired || e.says("quota", "billing", "credit balance", "insufficient credit", "insufficient balance", "insufficient funds")
}

// unknownModel reports whether the provider does not have the model, or not for this account.
func (e *Error) unknownModel() bool {
	switch {
	case e.Page || e.Kind != ErrBadRequest && e.Kind != ErrAuth && e.Kind != ErrUnknown:
		return false
	case e.Status == http.StatusNotFound || e.says("model_not_found"):
		return true
	}
	return e.says("model") && e.says("not found", "not exist", "unknown model", "no such model", "invalid model", "deprecated", "decommissioned", "not have access")
}

// says reports whether the provider's answer contains one of signs. Message is used only without a
// body, because it also contains eca's advice.
func (e *Error) says(signs ...string) bool {
	text := strings.ToLower(cmp.Or(e.Body, e.Message))
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}
