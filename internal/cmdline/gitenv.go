package cmdline

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// GitEnv returns environment variables with which the given settings (name=value) override those in
// git's configuration files. They are added to the settings that the environment already has.
// Optional locks are off, so that commands that only read do not write the index.
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

// HarmlessGit returns settings with which git commands that only read start nothing from a repository:
// no hooks, no file system monitor, no processes in submodules. A bare repository, which may have been
// checked in, is ignored unless it is named. Judging relies on these settings.
func HarmlessGit() []string {
	return []string{
		"core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.ignoreSubmodules=dirty", "diff.submodule=short", "status.submoduleSummary=false",
		"submodule.recurse=false", "diff.autoRefreshIndex=false", "safe.bareRepository=explicit",
	}
}

// GitCeilings returns the environment variable that prevents git from searching for a repository
// above the root folders, where it would find one that was not judged. A root within another root
// may belong to the repository of the outer root.
func GitCeilings(roots []string) string {
	var above []string
	for _, root := range roots {
		if !slices.ContainsFunc(roots, func(other string) bool {
			return safeio.Within(other, root) && !safeio.Within(root, other)
		}) {
			above = append(above, filepath.Dir(root))
		}
	}
	return "GIT_CEILING_DIRECTORIES=" + strings.Join(above, string(filepath.ListSeparator))
}
