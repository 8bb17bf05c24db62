package lang

func java() *Language {
	return &Language{
		Name: "java", family: "jvm",
		exts: []string{".java"},
		text: text{
			imports: importing{paths: "import", others: "java javax"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/"}},
			quotes: []quote{
				{open: `"""`, close: `"""`, escape: '\\', lines: true},
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
			},
			start: "$",
		},
		words: words(
			all(word{role: definer, kind: Class, hasMembers: true}, "class"),
			all(word{role: definer, kind: Interface, hasMembers: true}, "interface"),
			all(word{role: definer, kind: Enum, hasMembers: true}, "enum"),
			all(word{role: definer, kind: Class, hasMembers: true, soft: true}, "record"),
			all(word{role: continuing}, "extends implements throws"),
			all(word{role: continuing, soft: true}, "permits"),
			all(word{role: modifier}, "abstract default final native private protected public static strictfp synchronized transient volatile"),
			all(word{role: reserved}, `assert break case catch continue do else finally for goto if import instanceof new
				package return super switch this throw try while true false null`),
			all(word{role: reserved, soft: true}, "boolean byte char double float int long short void var String Object yield sealed Override"),
		),
		outline: (&declared{}).read,
	}
}
