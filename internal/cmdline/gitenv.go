package cmdline

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// GitEnv returns the environment with which git takes settings (name=value) before those
// of any file, after the settings that its environment has already. Optional locks are
// off: what only reads writes no index.
func GitEnv(getenv func(string) string, settings ...string) []string {
	n, err := strconv.Atoi(getenv("GIT_CONFIG_COUNT"))
	if err != nil || n < 0 {
		n = 0
	}
	out := []string{"GIT_OPTIONAL_LOCKS=0"}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		out = append(out, "GIT_CONFIG_KEY_"+strconv.Itoa(n)+"="+name, "GIT_CONFIG_VALUE_"+strconv.Itoa(n)+"="+value)
		n++
	}
	return append(out, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}

// HarmlessGit are settings with which git, where it only reads, starts nothing that a repository
// contains: no hooks, no monitor, no look into submodules. A folder that looks like a
// repository, and may be one that somebody checked in, does not count as one. Judging relies on
// them.
func HarmlessGit() []string {
	return []string{
		"core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.ignoreSubmodules=dirty", "diff.submodule=short", "status.submoduleSummary=false",
		"submodule.recurse=false", "diff.autoRefreshIndex=false", "safe.bareRepository=explicit",
	}
}

// GitCeilings is the variable that keeps git from looking for a repository above some folders:
// It would find another repository than the judged one. A folder in another one may belong to that one's.
func GitCeilings(roots []string) string {
	var above []string
	for _, root := range roots {
		if !slices.ContainsFunc(roots, func(other string) bool {
			rel, err := filepath.Rel(other, root)
			return err == nil && rel != "." && filepath.IsLocal(rel)
		}) {
			above = append(above, filepath.Dir(root))
		}
	}
	return "GIT_CEILING_DIRECTORIES=" + strings.Join(above, string(filepath.ListSeparator))
}
