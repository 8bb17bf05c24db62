// Package settings reads what programs take from a user's configuration besides its values: what
// its commands print, the certificates and the logins that it names, the variants of models, and
// which texts are secret. The daemon and the judge of evaluations both begin with it.
//
// It guarantees that every mistake is added to the problems of the configuration, with its place.
// It does not load the configuration, keeps nothing, and has no opinion about when to read again.
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

// StateDir returns where chats are kept.
func StateDir(getenv func(string) string) string {
	return home(getenv, "XDG_STATE_HOME", ".local/state")
}

// CacheDir returns where is kept what can be made again.
func CacheDir(getenv func(string) string) string {
	return home(getenv, "XDG_CACHE_HOME", ".cache")
}

// home returns eca's folder below an XDG base directory.
func home(getenv func(string) string, xdg, fallback string) string {
	if x := getenv(xdg); x != "" {
		return filepath.Join(x, "eca")
	}
	if h, err := os.UserHomeDir(); err == nil {
		return filepath.Join(h, filepath.FromSlash(fallback), "eca")
	}
	return filepath.Join(os.TempDir(), "eca")
}

// Variants are the user's variants of models; what is wrong with them is added to the
// problems.
func Variants(cfg *config.Loaded) *catalog.Variants {
	rules, bad := catalog.NewVariants(cfg.VariantsByModel)
	for _, pattern := range slices.Sorted(maps.Keys(bad)) {
		cfg.Problems = append(cfg.Problems, cfg.Problem([]string{"variantsByModel", pattern}, "variantsByModel: %q is not a valid pattern: %v", pattern, bad[pattern]))
	}
	return rules
}

// KeepLogins keeps logins where the configuration wants them, and takes over what others stored;
// what is wrong with that is added to the problems.
func KeepLogins(cfg *config.Loaded, stores ...*auth.Store) {
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
			cfg.Problems = append(cfg.Problems, Damaged(store.Path(), err))
		}
	}
}

// Damaged is a file of the state directory that cannot be used, as a problem.
func Damaged(path string, err error) config.Problem {
	out := config.Problem{Origin: config.Origin{Source: path}, Cause: err.Error()}
	var reasoned interface{ Reason() string } // which does not name the file again
	if errors.As(err, &reasoned) {
		out.Cause = reasoned.Reason()
	}
	if damaged := (*consent.DamagedError)(nil); errors.As(err, &damaged) {
		out.Line, out.Column = damaged.Line, damaged.Column
	}
	return out
}
