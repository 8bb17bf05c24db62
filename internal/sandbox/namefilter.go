package sandbox

import (
	"path"
	"strings"
)

// nameFilter quickly rules out most files that do not match Names.
type nameFilter struct {
	exact   map[string]bool
	affixes [][2]string // literal prefix and suffix of each pattern
}

func (n Names) filter() nameFilter {
	l := nameFilter{exact: map[string]bool{}}
	for _, list := range [][]string{n.Folders, n.Files, n.Patterns} {
		for _, name := range list {
			name = path.Base(name)
			special := strings.IndexAny(name, `*?[\`)
			if special < 0 {
				l.exact[name] = true
				continue
			}
			end := name[strings.LastIndexAny(name, `*?[]\`)+1:]
			l.affixes = append(l.affixes, [2]string{name[:special], end})
		}
	}
	return l
}

// mayMatch reports whether a path with this last element could match one of the names.
func (l nameFilter) mayMatch(name string) bool {
	name = Fold(name)
	if l.exact[name] {
		return true
	}
	for _, part := range l.affixes {
		if strings.HasPrefix(name, part[0]) && strings.HasSuffix(name, part[1]) {
			return true
		}
	}
	return false
}
