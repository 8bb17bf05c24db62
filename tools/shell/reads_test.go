package shell

import "testing"

func TestReads(t *testing.T) {
	for line, want := range map[string]bool{
		"ls -la":                               true,
		"git log --oneline | head -5":          true,
		"cd src && grep -rn foo . 2>/dev/null": true,
		"find . -name '*.go'":                  true,
		"git branch --show-current":            true,
		"date +%s":                             true,
		"find . -delete":                       false,
		"find . -exec sh -c id ;":              false,
		"find . -fprintf /tmp/x a":             false,
		"git diff --output=/tmp/x":             false,
		"git diff --outp=x":                    false,
		"git grep -Oless x":                    false,
		"git branch new":                       false,
		"git tag v1":                           false,
		"git -c core.pager=x log":              false,
		"git commit -m x":                      false,
		"git":                                  false,
		"rg --pre=sh x":                        false,
		"ls > out":                             false,
		"ls; rm a":                             false,
		"cat $(id)":                            false,
		"sort -o x y":                          false,
		"date -s tomorrow":                     false,
		"npm test":                             false,
		"X=1 ls":                               false,
		"/bin/ls":                              false,
		"":                                     false,
	} {
		commands, ok := Parse(line)
		if got := ok && reads(commands); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
