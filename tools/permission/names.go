package permission

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// ProtectedNames returns the names of protected places for the sandbox, without .git. The sandbox itself
// protects a part of .git, because git commands must change the rest.
func ProtectedNames() sandbox.Names {
	var folders []string
	for _, name := range protectedFolders() {
		if name != ".git" {
			folders = append(folders, name)
		}
	}
	return sandbox.Names{Folders: folders, Files: protectedFiles(), Patterns: protectedPatterns()}
}
