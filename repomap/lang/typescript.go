package lang

func typescript() *Language {
	return &Language{
		Name: "typescript", family: "javascript",
		exts: []string{".ts", ".mts", ".cts"},
		text: scriptText(),
		words: words(scriptWords(),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true, canBeName: true}, "interface"),
			wordsAs(word{role: definer, kind: Enum}, "enum"),
			wordsAs(word{role: definer, kind: Type, canBeName: true}, "type"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true, canBeName: true}, "namespace module"),
			wordsAs(word{role: modifier}, "export default"),
			wordsAs(word{role: modifier, canBeName: true}, `abstract accessor async declare get override private protected public
				readonly set static`),
			wordsAs(word{role: continuing, canBeName: true}, "implements is keyof infer"),
			wordsAs(word{role: reserved, canBeName: true}, "any boolean never number object string symbol unknown bigint as"),
		),
		outline: (&braces{lines: true, typeBrace: true, name: typescriptName, withoutKeyword: scriptWithoutKeyword, value: scriptFunction}).read,
	}
}

func tsx() *Language {
	l := typescript()
	l.Name, l.exts = "tsx", []string{".tsx"}
	return l
}

func typescriptName(o *outline, at int) int {
	switch o.word(at).kind {
	case Interface, Type, Enum, Module:
		// Elsewhere these words are names.
		if !o.at(at).first && o.word(at-1).role != modifier && o.word(at-1).role != definer && !o.isMark(at-1, ';') && !o.isMark(at-1, '}') && !o.isMark(at-1, '{') {
			return -1
		}
		if o.at(at + 1).first {
			return -1
		}
	}
	return scriptName(o, at)
}
