package permission

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// ProtectedNames returns the names of the files and folders that the sandbox protects. .git is not among
// them: git commands must change most of it, so the sandbox protects parts of it itself.
func ProtectedNames() sandbox.Names {
	var folders []string
	for _, name := range protectedFolders() {
		if name != ".git" {
			folders = append(folders, name)
		}
	}
	return sandbox.Names{Folders: folders, Files: protectedFiles(), Patterns: protectedPatterns()}
}
