package lang

import (
	"strings"
	"testing"
)

// Scan finds the imports of each language in all their forms.
func TestImports(t *testing.T) {
	ls := New()
	for _, c := range []struct{ language, src, want string }{
		{"c", "#include \"a/b.h\"\n# include <linux/list.h>\n#include <stdio.h>\n#include MACRO\n", "a/b.h linux/list.h"},
		{"cpp", "#include \"b.hpp\"\n", "b.hpp"},
		{"csharp", "using Shop.Core;\nusing static Shop.Tools.Maths;\nusing B = Shop.Basket;\nusing System.IO;\nclass A {}\n", "Shop/Core Shop/Tools/Maths Shop/Basket"},
		{"elixir", "defmodule A do\n  alias Shop.{Basket, Order}\n  import Shop.Tools\nend\n", "Shop/Basket Shop/Order Shop/Tools"},
		{"go", "package a\n\nimport \"x/y\"\n\nimport (\n\t\"fmt\"\n\tz \"x/z\"\n)\n\nfunc f() { g(\"no\") }\n", "x/y fmt x/z"},
		{"haskell", "import qualified Data.Shop as S\nimport Shop.Basket (add)\n", "Data/Shop Shop/Basket"},
		{"java", "package a;\nimport shop.Basket;\nimport static shop.Tools.add;\nimport java.util.List;\nimport shop.more.*;\n", "shop/Basket shop/Tools/add shop/more"},
		{"javascript", "import a, { b } from './a'\nimport './style.js'\nexport * from \"../c/d\"\nconst e = require('e')\nconst f = () => import('./f.js')\n", "./a ./style.js ../c/d e ./f.js"},
		{"typescript", "import type { A } from './a'\nimport b = require('./b')\nexport { c } from './c'\nlet from = 1\n", "./a ./b ./c"},
		{"kotlin", "import shop.Basket as B\nimport shop.tools.*\n", "shop/Basket shop/tools"},
		{"lua", "local a = require('shop.basket')\nlocal b = require \"shop/order\"\n", "shop/basket shop/order"},
		{"php", "<?php\nuse Shop\\Basket as B;\nuse Shop\\{Order, Item};\nrequire_once 'lib/a.php';\n", "Shop/Basket Shop/Order Shop/Item lib/a.php"},
		{"python", "import a.b as c\nfrom .d import e, f as g\nfrom . import (\n    h,\n    i,\n)\nfrom x import *\n", "a/b d d/e d/f h i x"},
		{"ruby", "require 'shop/basket'\nrequire_relative 'order'\nautoload :Item, 'shop/item'\n", "shop/basket ./order shop/item"},
		{"rust", "use crate::a::{self, b::C, d};\nuse std::io;\npub(crate) use super::e;\nmod f;\npub mod g;\n", "a a/b/C a/d e f g"},
		{"scala", "import shop.{Basket, Order => O}\nimport shop.tools._\nimport scala.util.Try\n", "shop/Basket shop/Order shop/tools"},
		{"bash", "source lib.sh\n", ""},
	} {
		var s Scanner
		_, uses := s.Scan(ls.ByName(c.language), []byte(c.src))
		if got := strings.Join(uses.Imports, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.language, got, c.want)
		}
	}
}
