package permission

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// ProtectedNames are the names of protected places, for the sandbox. What of a repository's .git
// is protected the sandbox knows itself: commands of git change the rest.
func ProtectedNames() sandbox.Names {
	var folders []string
	for _, name := range protectedFolders() {
		if name != ".git" {
			folders = append(folders, name)
		}
	}
	return sandbox.Names{Folders: folders, Files: protectedFiles(), Patterns: protectedPatterns()}
}
