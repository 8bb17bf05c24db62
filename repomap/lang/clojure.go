package lang

func clojure() *Language {
	return &Language{
		Name: "clojure",
		exts: []string{".clj", ".cljs", ".cljc", ".bb"}, shebang: []string{"bb", "clojure"},
		text: text{
			line:      []string{";"},
			quotes:    []quote{{open: `"`, close: `"`, escape: '\\', multiline: true}},
			nameStart: "*+!-<>=&", nameBytes: "*+!-<>=?'#", specialBytes: "\\", special: lispChar,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "defn defn- defmethod defmulti definline"),
			wordsAs(word{role: definer, kind: Macro}, "defmacro"),
			wordsAs(word{role: definer, kind: Variable}, "def defonce"),
			wordsAs(word{role: definer, kind: Interface}, "defprotocol definterface"),
			wordsAs(word{role: definer, kind: Class}, "defrecord deftype defstruct"),
			wordsAs(word{role: definer, kind: Module}, "ns"),
			wordsAs(word{role: reserved}, "let fn if when when-not cond case do loop recur try catch finally throw quote var nil true false and or not -> ->>"),
			wordsAs(word{role: reserved, canBeName: true}, "map filter reduce str get assoc conj into first rest comment"),
		),
		outline: (&lisp{
			conditions: true,
			name: func(o *outline, at int) int {
				name := at + 1
				for o.isMark(name, '^') { // metadata
					if name++; o.isMark(name, ':') {
						name++
					}
					for name = o.skip(name); o.isMark(name, '.') && o.adjoins(name-1); { // a Java type
						name += 2
					}
				}
				for (o.isMark(name+1, '.') || o.isMark(name+1, '/')) && o.adjoins(name) && o.adjoins(name+1) { // in a namespace
					name += 2
				}
				return name
			},
			params: func(o *outline, i int) bool { return o.isMark(i, '[') },
		}).read,
	}
}

// lispChar reads `\a`, `\(`, `\newline`.
func lispChar(x *lexer) bool {
	i := x.pos + 1
	if i >= len(x.src) || x.src[i] <= ' ' {
		return false
	}
	end := i + 1
	for end < len(x.src) && x.l.classes[x.src[end]] == letter && x.l.classes[x.src[i]] == letter {
		end++
	}
	x.stringTo(x.pos, end)
	return true
}
