package providers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
)

// fallbackProblems returns a problem for each entry of a list of fallback models that cannot be used.
// Turns skip these entries.
func (v *view) fallbackProblems() []config.Problem {
	var out []config.Problem
	v.cfg.EachFallbackList(func(path []string, model string, list []string) {
		for i := range list {
			if why := v.whyUseless(model, list, i); why != "" {
				at := append(slices.Clone(path), strconv.Itoa(i))
				out = append(out, v.cfg.Problem(at, "%s: %s; correct or remove this entry, which is ignored", config.KeyPath(v.cfg.SpelledPath(path...)), why))
			}
		}
	})
	return out
}

// whyUseless returns why entry i of a list of fallback models cannot be used, or "". model is the model
// that the list is for; it is empty for the lists of agents and the general list.
func (v *view) whyUseless(model string, list []string, i int) string {
	fallback := list[i]
	provider, _, full := strings.Cut(fallback, "/")
	_, known := v.all[provider]
	switch {
	case fallback == "":
		return fmt.Sprintf("entry %d is empty", i+1)
	case fallback == model:
		return v.cfg.SpelledModel(fallback) + " is its own fallback"
	case slices.Contains(list[:i], fallback):
		return v.cfg.SpelledModel(fallback) + " is named twice"
	case !full:
		return v.withoutProviderText(fallback)
	case !known && provider != demoProvider:
		return fmt.Sprintf("there is no provider %q%s", provider, v.cfg.SimilarProvider(provider))
	}
	return v.whyImpossible(fallback)
}
