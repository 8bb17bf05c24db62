// Package settings evaluates parts of a user's configuration that need more than its values: the
// output of its commands, certificates, logins, variants of models, and secrets. The daemon and the
// judge of evaluations both use it.
//
// It guarantees that every mistake is added to the problems of the configuration, with its
// position. It does not load the configuration, has no state, and does not decide when to read
// again.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/llm/catalog"
)

// StateDir returns the folder for chats and other lasting data.
func StateDir(getenv func(string) string) string {
	return xdgFolder(getenv, "XDG_STATE_HOME", ".local/state")
}

// CacheDir returns the folder for data that can be recreated.
func CacheDir(getenv func(string) string) string {
	return xdgFolder(getenv, "XDG_CACHE_HOME", ".cache")
}

// xdgFolder returns eca's folder below an XDG base directory.
func xdgFolder(getenv func(string) string, xdg, fallback string) string {
	if x := getenv(xdg); x != "" {
		return filepath.Join(x, "eca")
	}
	if h, err := os.UserHomeDir(); err == nil {
		return filepath.Join(h, filepath.FromSlash(fallback), "eca")
	}
	return filepath.Join(os.TempDir(), "eca")
}

// Variants returns the user's variants of models, and adds mistakes in them to the problems.
func Variants(cfg *config.Loaded) *catalog.Variants {
	rules, bad := catalog.NewVariants(cfg.VariantsByModel)
	for _, pattern := range slices.Sorted(maps.Keys(bad)) {
		cfg.Problems = append(cfg.Problems, cfg.Problem([]string{"variantsByModel", pattern}, "variantsByModel: %q is not a valid pattern: %v", pattern, bad[pattern]))
	}
	return rules
}

// UseLoginStore makes stores keep logins where the configuration selects, and adds
// mistakes in it, and in stored logins, to the problems.
func UseLoginStore(cfg *config.Loaded, stores ...*auth.Store) {
	switch place := auth.Place(cfg.Auth.Store); place {
	case "", auth.Auto, auth.InKeychain, auth.InFile:
		for _, s := range stores {
			s.Keep(place)
		}
	default:
		origin, _ := cfg.Origin("auth", "store")
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: origin, Cause: fmt.Sprintf("auth.store must be auto, keychain or file, not %.64q", place)})
	}
	for _, store := range stores {
		if _, err := store.All(); err != nil {
			cfg.Problems = append(cfg.Problems, DamagedFile(store.Path(), err))
		}
	}
}

// DamagedFile returns a problem for a file of the state directory that cannot be used.
func DamagedFile(path string, err error) config.Problem {
	out := config.Problem{Origin: config.Origin{Source: path}, Cause: err.Error()}
	var reasoned interface{ Reason() string } // a reason that does not repeat the file name
	if errors.As(err, &reasoned) {
		out.Cause = reasoned.Reason()
	}
	if damaged := (*consent.DamagedError)(nil); errors.As(err, &damaged) {
		out.Line, out.Column = damaged.Line, damaged.Column
	}
	return out
}
