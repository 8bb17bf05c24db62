"""Lists the definitions of source files as tree-sitter's grammars see them.

TestOracle compares repomap/lang with its output. It shares no code with that package. It writes
one line of JSON per file: the language, the path, whether the grammar found an error, and the
definitions as [name, line]. As in the package, names that are local to a function are omitted,
because other files cannot use them.

    python3 -m venv V && V/bin/pip install tree-sitter==0.26.1 tree-sitter-language-pack==0.13.0
    V/bin/python repomap/lang/oracle/definitions.py DIR >definitions.jsonl
    REPOMAP_ORACLE=$PWD/definitions.jsonl go test ./repomap/lang -run TestOracle -v
"""

import json
import os
import sys

from tree_sitter_language_pack import get_parser

EXTENSIONS = {
    "sh": "bash", "bash": "bash", "c": "c", "h": "c", "clj": "clojure", "cljs": "clojure", "cljc": "clojure",
    "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cs": "csharp", "ex": "elixir", "exs": "elixir", "el": "elisp",
    "hs": "haskell", "java": "java", "js": "javascript", "mjs": "javascript", "jsx": "javascript", "kt": "kotlin",
    "kts": "kotlin", "lua": "lua", "ml": "ocaml", "mli": "ocaml_interface", "php": "php", "py": "python",
    "rb": "ruby", "rs": "rust", "scala": "scala", "sql": "sql", "swift": "swift", "tsx": "tsx", "ts": "typescript",
}


def text(node):
    return node.text.decode("utf-8", "replace").strip("`\"")


def child(node, *types):
    """Return the first child that has one of the types, or None."""
    return next((c for c in node.named_children if c.type in types), None)


def field(name):
    return lambda node: [node.child_by_field_name(name)]


def last_part(node):
    """Return the node of the last name in `a.b.c`, `a::b`, `a\\b`."""
    while node is not None and node.named_children and node.type not in ("operator_name", "destructor_name"):
        kids = [c for c in node.named_children if not c.type.startswith(("type_arg", "template_arg", "type_param"))]
        if not kids:
            break
        node = kids[-1]
    return node


def qualified(name="name"):
    return lambda node: [last_part(node.child_by_field_name(name))]


def first(*types):
    return lambda node: [child(node, *types)]


NAME = field("name")


# --- languages with their own rules ------------------------------------------------

def python_assignment(node):
    top = node.parent.parent if node.parent.type == "expression_statement" else node.parent
    if top is None or top.type != "module" or node.child_by_field_name("right") is None:
        return []
    left = node.child_by_field_name("left")
    name = text(left).lstrip("_")
    constant = left.type == "identifier" and len(name) > 1 and name[0].isascii() and name[0].isupper()
    return [left] if constant else []


FUNCTIONS = ("arrow_function", "function_expression", "generator_function", "class")


def js_top(node):
    p = node.parent
    return p is not None and (p.type in ("program", "internal_module", "module") or p.type in ("export_statement", "ambient_declaration")
                              or p.type == "statement_block" and p.parent.type in ("internal_module", "module"))


def js_variables(node):
    out = []
    if not js_top(node):
        return out
    for d in node.named_children:
        if d.type == "variable_declarator":
            name, value = d.child_by_field_name("name"), d.child_by_field_name("value")
            if name.type != "identifier":
                continue
            required = value is not None and text(value).startswith("require(")
            if not required:
                out.append(name)
    return out


def js_assignment(node):
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    statement = node.parent
    while statement.type == "assignment_expression":
        statement = statement.parent
    if left.type != "member_expression" or statement.type != "expression_statement" or statement.parent.type != "program":
        return []
    owner = text(left.child_by_field_name("object"))
    # The value of module.exports itself has no name.
    if owner == "module" and text(left.child_by_field_name("property")) == "exports":
        return []
    # A reference to another definition is not a definition.
    reference = right.type in ("identifier", "member_expression", "assignment_expression") or text(right).startswith("require(")
    if owner in ("exports", "module.exports") and not reference or right.type in FUNCTIONS:
        return [left.child_by_field_name("property")]
    return []


def js_class(node):
    """Other files can use the name of a class expression only if the module exports the class."""
    exported = node.parent.type == "assignment_expression" and text(node.parent.child_by_field_name("left")) == "module.exports"
    return [node.child_by_field_name("name")] if exported else []


def js_field(node):
    value = node.child_by_field_name("value")
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    return [name] if value is not None and value.type in FUNCTIONS else []


JS = {
    "function_declaration": NAME, "generator_function_declaration": NAME, "class_declaration": NAME,
    "method_definition": NAME, "class": js_class, "lexical_declaration": js_variables, "variable_declaration": js_variables,
    "assignment_expression": js_assignment, "field_definition": js_field,
}
JS_LOCAL = {"function_declaration", "generator_function_declaration", "method_definition", "arrow_function",
            "function_expression", "generator_function", "object", "call_expression", "lexical_declaration",
            "variable_declaration", "for_statement", "for_in_statement", "if_statement", "try_statement"}
TS = JS | {
    "abstract_class_declaration": NAME, "interface_declaration": NAME, "type_alias_declaration": NAME,
    "enum_declaration": NAME, "internal_module": qualified(), "module": qualified(), "function_signature": NAME,
    "method_signature": NAME, "abstract_method_signature": NAME, "public_field_definition": js_field,
}
TS_LOCAL = JS_LOCAL | {"object_type", "type_alias_declaration", "function_signature", "method_signature"}


def c_name(node):
    """Return the name that a declarator declares, and whether it declares a function."""
    function = False
    while node is not None:
        if node.type == "operator_cast":
            return ("operator " + text(node.child_by_field_name("type")), node.start_point.row + 1), True
        if node.type == "function_declarator":
            inner = node.child_by_field_name("declarator")
            function = inner is None or inner.type != "parenthesized_declarator"
        down = node.child_by_field_name("declarator")
        if down is None and node.type in ("parenthesized_declarator", "reference_declarator", "attributed_declarator"):
            down = next((c for c in node.named_children if "declarator" in c.type or "identifier" in c.type), None)
        if node.type == "qualified_identifier":
            down = node.child_by_field_name("name")
        if node.type in ("template_function", "template_method"):
            down = node.child_by_field_name("name")
        if down is None:
            return node, function
        node = down
    return None, False


def c_declarators(node):
    return [c_name(d) for d in node.children_by_field_name("declarator")]


def c_function(node):
    declarator = node.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "parenthesized_declarator":  # TEST(name) {}
        return []
    # A macro, as in TEST(suite, name) {}: the grammar takes it for a constructor.
    if node.child_by_field_name("type") is None and node.parent.type != "field_declaration_list":
        name = c_declarators(node)
        if name and not isinstance(name[0][0], tuple) and text(name[0][0]).isupper():
            return []
    return [c_declarators(node)[0][0]] if c_declarators(node) else [child(node, "operator_cast")]


def c_prototype(node):
    return [n for n, function in c_declarators(node) if function]


def c_tagged(node):
    return [last_part(node.child_by_field_name("name"))] if node.child_by_field_name("body") else []


C = {
    "function_definition": c_function, "declaration": c_prototype, "preproc_def": NAME, "preproc_function_def": NAME,
    "type_definition": lambda n: [x for x, _ in c_declarators(n)],
    "struct_specifier": c_tagged, "union_specifier": c_tagged, "enum_specifier": c_tagged,
}
CPP = C | {
    "class_specifier": c_tagged, "field_declaration": c_prototype, "alias_declaration": NAME,
    "namespace_definition": qualified(),
}


def ruby_method(node):
    """The name of a setter is `name`, not `name=`."""
    name = node.child_by_field_name("name")
    return [child(name, "identifier") or name] if name.type == "setter" else [name]


def ruby_call(node):
    method = node.child_by_field_name("method")
    if node.child_by_field_name("receiver") or method is None or text(method) not in ("attr_accessor", "attr_reader", "attr_writer"):
        return []
    args = node.child_by_field_name("arguments")
    symbols = [a for a in args.named_children if a.type == "simple_symbol"] if args else []
    return [(text(a).lstrip(":"), a.start_point.row + 1) for a in symbols]


def ruby_assignment(node):
    left = node.child_by_field_name("left")
    return [left] if left.type == "constant" else []


def swift_names(node):
    name = node.child_by_field_name("name")
    while name is not None and name.type in ("user_type", "pattern"):
        name = name.named_children[-1] if name.named_children else None
    return [name]


def swift_property(node):
    out = []
    for n in node.children_by_field_name("name"):
        inner = n.child_by_field_name("bound_identifier") or child(n, "simple_identifier")
        if inner is not None:
            out.append(inner)
    return out


def scala_value(node):
    pattern = node.child_by_field_name("pattern") or node.child_by_field_name("name")
    return [pattern] if pattern is not None and pattern.type == "identifier" else []


def lua_assignment(node):
    names, values = child(node, "variable_list"), child(node, "expression_list")
    if names is None or values is None:
        return []
    pairs = zip(names.named_children, values.named_children)
    return [last_part(n) for n, v in pairs if v.type == "function_definition" and n.type != "bracket_index_expression"]


def lua_field(node):
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    named = name is not None and name.type == "identifier" and value is not None and value.type == "function_definition"
    return [name] if named else []


ELIXIR_DEFS = {"def", "defp", "defmacro", "defmacrop", "defguard", "defguardp", "defdelegate", "defn"}


def elixir_call(node):
    target, args = node.child_by_field_name("target"), child(node, "arguments")
    if target is None or target.type != "identifier" or args is None or not args.named_children:
        return []
    what, arg = text(target), args.named_children[0]
    if what in ("defmodule", "defprotocol", "defimpl"):
        return [(text(arg).split(".")[-1], arg.start_point.row + 1)] if arg.type == "alias" else []
    if what not in ELIXIR_DEFS:
        return []
    while arg.type == "binary_operator" and text(arg.child_by_field_name("operator")) == "when":
        arg = arg.child_by_field_name("left")
    if arg.type == "call":
        arg = arg.child_by_field_name("target")
    return [arg] if arg.type == "identifier" else []


def elixir_local(node):
    """Report whether a node is a function. Definitions in its quotes belong to the modules that use it."""
    return node.type == "call" and text(node.child_by_field_name("target") or node) in ELIXIR_DEFS


def elixir_attribute(node):
    inner = node.child_by_field_name("operand")
    if inner is None or inner.type != "call" or not text(node).startswith("@"):
        return []
    if text(inner.child_by_field_name("target")) not in ("type", "typep", "opaque", "callback", "macrocallback"):
        return []
    arg = child(inner, "arguments").named_children[0]
    while arg.type == "binary_operator":
        arg = arg.child_by_field_name("left")
    if arg.type == "call":
        arg = arg.child_by_field_name("target")
    return [arg] if arg.type == "identifier" else []


CLOJURE_DEFS = {"def", "defn", "defn-", "defmacro", "defmulti", "defmethod", "defprotocol", "defrecord", "deftype",
                "defonce", "definterface", "ns", "definline", "defstruct"}


def clojure_list(node):
    kids = [c for c in node.named_children if c.type != "comment"]
    if len(kids) < 2 or kids[0].type != "sym_lit" or kids[1].type != "sym_lit" or text(kids[0]) not in CLOJURE_DEFS:
        return []
    name = child(kids[1], "sym_name")
    part = text(name).split(".")[-1] if text(kids[0]) == "ns" else text(name).split("/")[-1]
    return [(part, name.start_point.row + 1)]


ELISP_DEFS = {"defun", "defmacro", "defsubst", "defvar", "defconst", "defcustom", "defgroup", "defface", "defvar-local",
              "defalias", "cl-defun", "cl-defmacro", "cl-defmethod", "cl-defgeneric", "cl-defstruct", "defclass",
              "define-minor-mode", "define-derived-mode", "define-globalized-minor-mode", "define-inline",
              "transient-define-prefix", "transient-define-suffix", "transient-define-infix", "transient-define-argument"}


def elisp_list(node):
    kids = [c for c in node.children if c.type not in ("(", ")", "comment")]
    if len(kids) < 2 or text(kids[0]) not in ELISP_DEFS:
        return []
    # A variable that is only declared, as in (defvar x), belongs to another file.
    if text(kids[0]) == "defvar" and len(kids) == 2:
        return []
    name = kids[1]
    if name.type in ("list", "quote"):
        name = next((c for c in name.named_children if c.type == "symbol"), None)
    return [name] if name is not None and name.type == "symbol" else []


def haskell_head(node):
    name = node.child_by_field_name("name")
    if name is None:
        return []
    return [last_part(name)]


def haskell_signature(node):
    names = node.child_by_field_name("names")
    if names is not None:
        return list(names.named_children)
    return [node.child_by_field_name("name")]


def ocaml_let(node):
    pattern = node.child_by_field_name("pattern")
    return [pattern] if pattern is not None and pattern.type in ("value_name", "parenthesized_operator") else []


def bash_declaration(node):
    if node.parent.type != "program" or text(node).split()[0] not in ("export", "readonly"):
        return []
    return [a.child_by_field_name("name") for a in node.named_children if a.type == "variable_assignment"]


def sql_object(node):
    if node.type == "create_index":
        return [node.child_by_field_name("column")]
    ref = child(node, "object_reference")
    return [ref.child_by_field_name("name") if ref is not None else None]


TYPE_LIKE = {"class_declaration": NAME, "interface_declaration": NAME, "enum_declaration": NAME, "record_declaration": NAME}
OCAML = {
    "let_binding": ocaml_let, "type_binding": qualified(), "module_binding": first("module_name"),
    "module_type_definition": first("module_type_name"), "exception_definition": lambda n: [child(child(n, "constructor_declaration") or n, "constructor_name")],
    "external": first("value_name", "parenthesized_operator"), "value_specification": first("value_name", "parenthesized_operator"),
    "class_binding": first("class_name"), "class_type_binding": first("class_type_name"), "method_definition": first("method_name"),
    "method_specification": first("method_name"),
}

# Per language: a function for each type of node that defines names, and the types of nodes
# whose children are skipped.
RULES = {
    "bash": ({"function_definition": NAME, "declaration_command": bash_declaration}, {"function_definition"}),
    "c": (C, {"compound_statement", "parameter_list", "field_declaration_list"}),
    "cpp": (CPP, {"compound_statement", "parameter_list"}),
    "clojure": ({"list_lit": clojure_list}, {"anon_fn_lit", "quoting_lit", "vec_lit", "map_lit", "dis_expr"}),
    "csharp": (TYPE_LIKE | {
        "struct_declaration": NAME, "method_declaration": NAME, "constructor_declaration": NAME, "property_declaration": NAME,
        "delegate_declaration": NAME, "namespace_declaration": qualified(), "file_scoped_namespace_declaration": qualified(),
        "conversion_operator_declaration": lambda n: [("operator " + text(n.child_by_field_name("type")), n.child_by_field_name("type").start_point.row + 1)],
        "destructor_declaration": lambda n: [("~" + text(n.child_by_field_name("name")), n.child_by_field_name("name").start_point.row + 1)],
        "operator_declaration": lambda n: [("operator" + text(n.child_by_field_name("operator")), n.child_by_field_name("operator").start_point.row + 1)],
    }, {"block", "arrow_expression_clause", "accessor_list", "field_declaration"}),
    "elixir": ({"call": elixir_call, "unary_operator": elixir_attribute}, elixir_local),
    "elisp": ({k: elisp_list for k in ("function_definition", "macro_definition", "special_form", "list")}, {"function_definition", "quote"}),
    "haskell": ({
        "signature": haskell_signature, "function": NAME, "bind": NAME, "data_type": haskell_head, "newtype": haskell_head,
        "header": lambda n: [last_part(n.child_by_field_name("module"))],
        "type_synomym": haskell_head, "class": haskell_head, "instance": haskell_head, "type_family": haskell_head,
        "data_family": haskell_head,
    }, {"function", "bind", "signature", "data_type", "newtype", "type_synomym", "foreign_export", "instance"}),
    "java": (TYPE_LIKE | {
        "annotation_type_declaration": NAME, "method_declaration": NAME, "constructor_declaration": NAME,
        "compact_constructor_declaration": NAME, "annotation_type_element_declaration": NAME,
    }, {"block", "constructor_body", "field_declaration", "enum_constant", "annotation"}),
    "javascript": (JS, JS_LOCAL),
    "kotlin": ({
        "class_declaration": first("type_identifier"), "object_declaration": first("type_identifier"),
        "companion_object": first("type_identifier"), "function_declaration": first("simple_identifier"),
        "type_alias": first("type_identifier"),
        "property_declaration": lambda n: [child(child(n, "variable_declaration") or n, "simple_identifier")],
    }, {"function_body", "secondary_constructor", "if_expression", "property_declaration", "lambda_literal", "anonymous_initializer",
        "enum_entry", "call_expression", "annotation"}),
    "lua": ({
        "function_declaration": qualified(), "assignment_statement": lua_assignment, "field": lua_field,
    }, {"function_declaration", "function_definition"}),
    "ocaml": (OCAML, {"let_binding", "module_parameter", "open_module"}),
    "ocaml_interface": (OCAML, {"let_binding", "module_parameter", "open_module"}),
    "php": (TYPE_LIKE | {
        "namespace_definition": qualified(), "trait_declaration": NAME, "function_definition": NAME, "method_declaration": NAME,
        "const_element": lambda n: [child(n, "name")],
    }, {"function_definition", "method_declaration", "anonymous_function", "object_creation_expression"}),
    "python": ({"function_definition": NAME, "class_definition": NAME, "assignment": python_assignment}, {"function_definition"}),
    "ruby": ({
        "method": ruby_method, "singleton_method": ruby_method, "class": qualified(), "module": qualified(), "call": ruby_call,
        "assignment": ruby_assignment,
    }, {"method", "singleton_method", "lambda"}),
    "rust": ({k: NAME for k in (
        "function_item", "function_signature_item", "struct_item", "enum_item", "union_item", "trait_item", "type_item",
        "associated_type", "const_item", "static_item", "mod_item", "macro_definition",
    )} | {"impl_item": lambda n: [rust_type(n.child_by_field_name("type")) or rust_type(n.child_by_field_name("trait"))]}, {"block", "macro_invocation"}),
    "scala": ({
        "class_definition": NAME, "object_definition": NAME, "trait_definition": NAME, "enum_definition": NAME,
        "function_definition": NAME, "function_declaration": NAME, "type_definition": NAME, "package_object": NAME,
        "val_definition": scala_value, "var_definition": scala_value, "val_declaration": scala_value, "var_declaration": scala_value,
    }, {"block", "function_definition", "val_definition", "var_definition", "call_expression", "indented_block", "instance_expression"}),
    "sql": ({k: sql_object for k in (
        "create_table", "create_view", "create_materialized_view", "create_index", "create_function", "create_trigger",
        "create_type", "create_sequence",
    )} | {"create_schema": first("identifier"), "create_database": first("identifier")}, set()),
    "swift": ({
        "class_declaration": swift_names, "protocol_declaration": swift_names, "function_declaration": NAME,
        "protocol_function_declaration": NAME, "macro_declaration": first("simple_identifier"), "typealias_declaration": NAME, "associatedtype_declaration": NAME,
        "init_declaration": lambda n: [("init", next(c for c in n.children if c.type == "init").start_point.row + 1)],
        "property_declaration": swift_property, "protocol_property_declaration": swift_property,
    }, {"function_body", "property_declaration", "statements", "computed_property", "lambda_literal"}),
    "tsx": (TS, TS_LOCAL),
    "typescript": (TS, TS_LOCAL),
}


def rust_type(node):
    """Return the node of the name in `a::Type<T>`, `&Type`, `dyn Type`."""
    while node is not None:
        if node.type in ("type_identifier", "primitive_type"):
            return node
        node = node.child_by_field_name("type") or node.child_by_field_name("name") or node.child_by_field_name("trait")
    return None


def definitions(root, rules, opaque):
    """List the definitions below a node, without the children of opaque nodes."""
    out, pending = [], [root]
    while pending:
        node = pending.pop()
        rule = rules.get(node.type)
        for name in rule(node) if rule and node.is_named else []:
            if name is None:
                continue
            out.append(name if isinstance(name, tuple) else (text(name), name.start_point.row + 1))
        if node is root or not (opaque(node) if callable(opaque) else node.type in opaque):
            pending.extend(node.children)
    return out


def clean_up(language, found):
    """Sort definitions by line, keep the first clause of each function, and remove `#` from names."""
    found = sorted(found, key=lambda d: d[1])
    if language == "elixir":
        return [d for i, d in enumerate(found) if i == 0 or found[i - 1][0] != d[0] or d[0][0].isupper()]
    if language == "haskell":
        seen = set()
        return [d for d in found if d[0][0].isupper() or not (d[0] in seen or seen.add(d[0]))]
    if language in ("javascript", "typescript", "tsx"):  # `#name` is private
        return [(name.lstrip("#"), line) for name, line in found]
    return found


def main(top):
    parsers = {}
    for folder, subs, files in os.walk(top):
        subs[:] = sorted(s for s in subs if not s.startswith(".") and s not in ("node_modules", "vendor", "third_party"))
        for file in sorted(files):
            language = EXTENSIONS.get(file.rsplit(".", 1)[-1]) if "." in file and ".min." not in file else None
            path = os.path.join(folder, file)
            if language is None or not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                continue
            if language not in parsers:
                parsers[language] = get_parser(language)
            with open(path, "rb") as f:
                source = f.read()
            root = parsers[language].parse(source).root_node
            rules, opaque = RULES[language]
            print(json.dumps({
                "language": language.removesuffix("_interface"), "path": os.path.abspath(path),
                "error": root.has_error, "definitions": [] if root.has_error else clean_up(language, definitions(root, rules, opaque)),
            }))


if __name__ == "__main__":
    main(sys.argv[1])
