package permission

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// ProtectedNames returns the names of the files and folders that the sandbox protects. It omits .git,
// most of which git commands must change; package sandbox protects the other parts.
func ProtectedNames() sandbox.Names {
	var folders []string
	for _, name := range protectedFolders() {
		if name != ".git" {
			folders = append(folders, name)
		}
	}
	return sandbox.Names{Folders: folders, Files: protectedFiles(), Patterns: protectedPatterns()}
}
