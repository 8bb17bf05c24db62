package lang

func elisp() *Language {
	return &Language{
		Name: "elisp",
		exts: []string{".el"}, names: []string{".emacs", "Cask"},
		text: text{
			line:      []string{";"},
			quotes:    []quote{{open: `"`, close: `"`, escape: '\\', multiline: true}},
			nameStart: "-+*/~!$%^&:<>=", nameBytes: "-+*/~!@$%^&:<>=?.", specialBytes: "?\\", special: elispSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "defun defsubst cl-defun cl-defmethod cl-defgeneric define-inline defadvice defalias iter-defun"),
			wordsAs(word{role: definer, kind: Function}, "define-minor-mode define-globalized-minor-mode define-derived-mode define-generic-mode transient-define-prefix transient-define-suffix transient-define-infix transient-define-argument"),
			wordsAs(word{role: definer, kind: Macro}, "defmacro cl-defmacro define-error"), // there is no kind for the error symbols of define-error
			wordsAs(word{role: definer, kind: Variable}, "defvar defvar-local defcustom defface defgroup"),
			wordsAs(word{role: definer, kind: Constant}, "defconst"),
			wordsAs(word{role: definer, kind: Class}, "cl-defstruct defclass"),
			wordsAs(word{role: reserved}, "let let* if when unless cond progn prog1 lambda setq while dolist dotimes and or not nil interactive save-excursion quote function t"),
			wordsAs(word{role: reserved, canBeName: true}, "car cdr list cons format message error require provide"),
		),
		outline: (&lisp{
			name: func(o *outline, at int) int {
				name := at + 1
				if o.is(at, "defvar") && o.isMark(name+1, ')') { // only declares it
					return -1
				}
				if o.isMark(name, '\'') || o.isMark(name, '(') { // (defalias 'name ...), (cl-defstruct (name ...) ...)
					name++
				}
				return name
			},
			// The value of a variable can pass for parameters; its signature then includes the value.
			params: func(o *outline, i int) bool { return o.isMark(i, '(') },
		}).read,
	}
}

// elispSpecial reads character literals, such as `?a` and `?\"`, and skips escaped characters of symbols.
// Of `?\C-x` it reads `?\C`; the rest looks like a symbol, which does no harm.
func elispSpecial(x *lexer) bool {
	i := x.pos + 1
	if i >= len(x.src) {
		return false
	}
	if x.src[x.pos] == '\\' {
		if x.src[i] == '\n' {
			return false
		}
		x.pos += 2
		return true
	}
	end := i + 1
	if x.src[i] == '\\' {
		end++
	}
	x.stringTo(x.pos, min(end, len(x.src)))
	return true
}
