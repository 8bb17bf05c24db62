package providers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
)

// fallbackProblems returns problems for fallback models that cannot be used. Turns skip them.
func (v *view) fallbackProblems() []config.Problem {
	var out []config.Problem
	v.cfg.EachFallbackList(func(path []string, of string, list []string) {
		for i := range list {
			if why := v.uselessFallback(of, list, i); why != "" {
				at := append(slices.Clone(path), strconv.Itoa(i))
				out = append(out, v.cfg.Problem(at, "%s: %s; correct or remove this entry, which is ignored", config.KeyPath(v.cfg.SpelledPath(path...)), why))
			}
		}
	})
	return out
}

// uselessFallback returns why entry i of a model's list of fallbacks cannot be used, or "".
func (v *view) uselessFallback(model string, list []string, i int) string {
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
		return v.withoutProvider(fallback)
	case !known && provider != demoProvider:
		return fmt.Sprintf("there is no provider %q%s", provider, v.cfg.SimilarProvider(provider))
	}
	return v.impossible(fallback)
}
