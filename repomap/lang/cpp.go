package lang

func cpp() *Language {
	return &Language{
		Name: "cpp", family: "c",
		exts: []string{".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp", ".cu", ".cuh"},
		text: cText(),
		words: words(cWords(),
			wordsAs(word{role: definer, kind: Struct, hasMembers: true}, "struct union"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Enum}, "enum"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "namespace"),
			wordsAs(word{role: modifier, kind: Type}, "typedef using"),
			wordsAs(word{role: modifier}, "constexpr consteval constinit explicit friend mutable private protected public template typename virtual"),
			wordsAs(word{role: reserved}, `alignof and and_eq bitand bitor catch co_await co_return co_yield const_cast
				decltype delete dynamic_cast new noexcept not not_eq nullptr operator or or_eq reinterpret_cast requires
				static_assert static_cast this throw try typeid xor xor_eq alignas`),
			wordsAs(word{role: reserved, canBeName: true}, "final override std concept"),
		),
		outline: (&typeFirst{prototypes: true, macros: true}).read,
	}
}
