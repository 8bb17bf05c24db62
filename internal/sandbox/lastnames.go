package sandbox

import (
	"path"
	"strings"
)

// lastNames says quickly of most files that they are none of Names.
type lastNames struct {
	whole map[string]bool
	parts [][2]string // what patterns begin and end with
}

func (n Names) last() lastNames {
	l := lastNames{whole: map[string]bool{}}
	for _, list := range [][]string{n.Folders, n.Files, n.Patterns} {
		for _, name := range list {
			name = path.Base(name)
			special := strings.IndexAny(name, `*?[\`)
			if special < 0 {
				l.whole[name] = true
				continue
			}
			end := name[strings.LastIndexAny(name, `*?[]\`)+1:]
			l.parts = append(l.parts, [2]string{name[:special], end})
		}
	}
	return l
}

// may says whether a path with this last name can be one of the names.
func (l lastNames) may(name string) bool {
	name = Fold(name)
	if l.whole[name] {
		return true
	}
	for _, part := range l.parts {
		if strings.HasPrefix(name, part[0]) && strings.HasSuffix(name, part[1]) {
			return true
		}
	}
	return false
}
