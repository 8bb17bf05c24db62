package catalog

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/seed-dec29ce4/eca/config"
)

// Default is the name of the variant that is used if the user selects none. It is not listed.
const Default = "default"

// Payloads are the variants of one model by name. Each is merged into the body of a request; null removes a field.
type Payloads map[string]map[string]any

//go:embed variants.json
var variantsJSON []byte

// Variants has the rules that assign variants to models by name: the built-in rules (variants.json)
// and the user's (eca-features.md 6.3).
type Variants struct {
	builtIn func() []variantRule // compiled when first needed
	user    []variantRule
}

type variantRule struct {
	pattern *regexp2.Regexp
	config.VariantRule
}

// matchTimeout limits one match of a pattern.
const matchTimeout = 100 * time.Millisecond

// NewVariants compiles the rules of the setting variantsByModel. It leaves out invalid patterns; bad
// has the error of each of them.
func NewVariants(user map[string]config.VariantRule) (v *Variants, bad map[string]error) {
	rules, bad := compile(user)
	return &Variants{user: rules, builtIn: sync.OnceValue(func() []variantRule {
		var rules map[string]config.VariantRule
		if err := json.Unmarshal(variantsJSON, &rules); err != nil {
			panic(err) // embedded: a test parses it
		}
		compiled, _ := compile(rules)
		return compiled
	})}, bad
}

func compile(rules map[string]config.VariantRule) (out []variantRule, bad map[string]error) {
	bad = map[string]error{}
	for _, pattern := range slices.Sorted(maps.Keys(rules)) {
		re, err := regexp2.Compile(pattern, regexp2.None)
		if err != nil {
			bad[pattern] = err
			continue
		}
		re.MatchTimeout = matchTimeout
		out = append(out, variantRule{re, rules[pattern]})
	}
	return out, bad
}

// Of returns the variants of a model: those of all rules whose pattern matches its name, and own,
// the model's own. Own variants override those of rules, the user's rules override built-in ones,
// and patterns apply in alphabetical order. An empty payload removes a variant. If the model
// cannot reason, fields that request reasoning are removed from the payloads, and so are variants
// that become empty.
func (v *Variants) Of(provider, api, model string, own Payloads, reasoning bool) Payloads {
	out := Payloads{}
	for _, r := range slices.Concat(v.builtIn(), v.user) {
		if r.applies(provider, api, model) {
			maps.Copy(out, r.Variants)
		}
	}
	maps.Copy(out, own)
	for name, payload := range out {
		if !reasoning {
			payload = WithoutReasoning(payload)
		}
		if out[name] = payload; len(payload) == 0 {
			delete(out, name)
		}
	}
	return out
}

// All returns the variants of all rules, whatever model they apply to.
func (v *Variants) All() Payloads {
	out := Payloads{}
	for _, r := range slices.Concat(v.builtIn(), v.user) {
		maps.Copy(out, r.Variants)
	}
	return out
}

func (r variantRule) applies(provider, api, model string) bool {
	if slices.Contains(r.ExcludeProviders, provider) || len(r.API) > 0 && !slices.Contains(r.API, api) {
		return false
	}
	ok, err := r.pattern.MatchString(model)
	return ok && err == nil
}

// WithoutReasoning returns a payload without the fields that request reasoning, in any of the APIs.
func WithoutReasoning(payload map[string]any) map[string]any {
	out := maps.Clone(payload)
	for _, key := range []string{"reasoning", "reasoning_effort", "reasoning_config", "thinking", "think"} {
		delete(out, key)
	}
	for object, key := range map[string]string{"output_config": "effort", "generationConfig": "thinkingConfig"} {
		if inner, ok := out[object].(map[string]any); ok {
			inner = maps.Clone(inner)
			delete(inner, key)
			if out[object] = inner; len(inner) == 0 {
				delete(out, object)
			}
		}
	}
	return out
}

// Names lists the variants that a user can choose, sorted.
func (p Payloads) Names() []string {
	names := []string{}
	for _, n := range slices.Sorted(maps.Keys(p)) {
		if n != Default {
			names = append(names, n)
		}
	}
	return names
}
