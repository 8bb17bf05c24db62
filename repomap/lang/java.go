package lang

func java() *Language {
	return &Language{
		Name: "java", family: "jvm",
		exts: []string{".java"},
		text: text{
			imports: importing{paths: "import", standard: "java javax"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/"}},
			quotes: []quote{
				{open: `"""`, close: `"""`, escape: '\\', multiline: true},
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
			},
			nameStart: "$",
		},
		words: words(
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "interface"),
			wordsAs(word{role: definer, kind: Enum, hasMembers: true}, "enum"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true, canBeName: true}, "record"),
			wordsAs(word{role: continuing}, "extends implements throws"),
			wordsAs(word{role: continuing, canBeName: true}, "permits"),
			wordsAs(word{role: modifier}, "abstract default final native private protected public static strictfp synchronized transient volatile"),
			wordsAs(word{role: reserved}, `assert break case catch continue do else finally for goto if import instanceof new
				package return super switch this throw try while true false null`),
			wordsAs(word{role: reserved, canBeName: true}, "boolean byte char double float int long short void var String Object yield sealed Override"),
		),
		outline: (&typeFirst{}).read,
	}
}
