"""Languages: their file names, their tree-sitter grammars, and what counts as a definition in each.

Grammars are imported when a text is first parsed, one wheel a language; where one is missing, or the language has none,
`grammar` returns None and callers go by indentation or do nothing. `tree.py` parses.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

_GRAMMARS = {  # language: (module, function in it)
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "julia": ("tree_sitter_julia", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}

_SUFFIXES = {
    "bash": "sh bash zsh",
    "c": "c h",
    "cpp": "cpp cc cxx c++ hpp hh hxx h++ ipp tpp cu cuh",
    "csharp": "cs",
    "css": "css",
    "go": "go",
    "haskell": "hs",
    "html": "html htm",
    "java": "java",
    "javascript": "js mjs cjs jsx",
    "json": "json",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "makefile": "mk mak",
    "markdown": "md markdown",
    "php": "php",
    "python": "py pyi pyw",
    "r": "r",
    "ruby": "rb rake gemspec ru",
    "rust": "rs",
    "scala": "scala sc",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "yaml": "yaml yml",
    "zig": "zig",
}
_BY_SUFFIX = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_BY_NAME = {
    "gemfile": "ruby",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    "sconstruct": "python",
    "makefile": "makefile",
}

_JS = (
    "function_declaration generator_function_declaration class_declaration method_definition "
    "lexical_declaration= variable_declaration= field_definition= pair="
)
_TS = _JS + (
    " abstract_class_declaration interface_declaration type_alias_declaration enum_declaration internal_module module "
    "function_signature method_signature abstract_method_signature public_field_definition="
)
_C = "function_definition struct_specifier{ union_specifier{ enum_specifier{ type_definition preproc_function_def"
_DEFINITIONS = {  # "=": only where a function is assigned; "{": only with a body
    "c": _C,
    "cpp": _C + " class_specifier{ namespace_definition concept_definition alias_declaration",
    "go": "function_declaration method_declaration type_declaration",
    "java": "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
    "method_declaration constructor_declaration compact_constructor_declaration",
    "javascript": _JS,
    "julia": "function_definition macro_definition struct_definition abstract_definition primitive_definition "
    "module_definition assignment=",
    "lua": "function_declaration assignment_statement= variable_declaration= field=",
    "python": "function_definition class_definition",
    "ruby": "method singleton_method class module singleton_class",
    "rust": "function_item function_signature_item struct_item enum_item union_item impl_item trait_item mod_item "
    "macro_definition type_item const_item static_item",
    "tsx": _TS,
    "typescript": _TS,
}
_FUNCTION_VALUES = frozenset(
    ["arrow_function", "function_expression", "generator_function", "function_definition", "class"]
)
_OUTER = """
    decorated_definition export_statement ambient_declaration template_declaration macrocall_expression
    macro_argument_list declaration const_statement expression_statement variable_declaration
"""
WRAPPERS = frozenset(_OUTER.split())
"""Nodes that belong to the definition in them: decorators, `export`, `template <...>`, `@inline` and so on."""


def language_of(path: str) -> str | None:
    """The language that a file's name tells, as fences and model cards name it; None when it tells none."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, dot, suffix = name.rpartition(".")
    return _BY_SUFFIX.get(suffix) if dot and stem else None


def grammar(language: str | None) -> "Parser | None":
    """A parser of `language`, for the one who asks: it is not for several threads; None where there is none."""
    found = _language(language) if language in _GRAMMARS else None
    if found is None:
        return None
    from tree_sitter import Parser

    return Parser(found)


@cache
def _language(name: str) -> "Language | None":
    module, function = _GRAMMARS[name]
    try:
        from tree_sitter import Language

        return Language(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, ValueError):  # no wheel, or one for another version of tree-sitter
        return None


@cache
def _definition_types(language: str) -> dict[str, str]:
    words = _DEFINITIONS[language].split()
    return {word.rstrip("={"): word[-1] if word[-1] in "={" else "" for word in words}


def is_definition(node: "Node", language: str) -> bool:
    """Whether `node` defines a function, type, module or the like; wrappers around it do not count."""
    condition = _definition_types(language).get(node.type) if node.is_named else None
    if condition == "{":
        return node.child_by_field_name("body") is not None
    if condition == "=":
        return _assigned_function(node) is not None
    return condition is not None


def _assigned_function(node: "Node") -> "Node | None":
    """The left side of `f = function`, `const f = () => ...` or Julia's `f(x) = ...`, if `node` is one of these."""
    if node.type == "assignment":  # Julia
        left = node.named_child(0)
        while left is not None and left.type in ("typed_expression", "where_expression"):
            left = left.named_child(0)
        return left if left is not None and left.type == "call_expression" else None
    inner = node
    for wanted in ("variable_declarator", "assignment_statement"):
        inner = next((child for child in inner.named_children if child.type == wanted), inner)
    value = inner.child_by_field_name("value")
    if value is None:
        value = next((child for child in inner.named_children if child.type == "expression_list"), None)
        value = value.named_child(0) if value is not None else None
    return inner.named_child(0) if value is not None and value.type in _FUNCTION_VALUES else None


def wrapped(node: "Node") -> "Node":
    """`node` with the wrappers around it that hold no other definition."""
    while node.parent is not None and node.parent.type in WRAPPERS:
        node = node.parent
    return node


def name_of(node: "Node", text: "Callable[[Node], str]") -> str:
    """The name that a definition gives; for an `impl` block what it implements; empty where it gives none.

    text: what a node spans.
    """
    if node.type == "impl_item":
        parts = [node.child_by_field_name(field) for field in ("trait", "type")]
        return " for ".join(text(part) for part in parts if part is not None)
    found = _assigned_function(node) or node.child_by_field_name("name")
    if found is None and node.child_by_field_name("declarator") is not None:  # C: pointers and parameters around a name
        found = node
        while (inner := found.child_by_field_name("declarator")) is not None:
            found = inner
    for candidate in _preorder(found if found is not None else node):
        if candidate.type == "type_head" or not candidate.named_child_count or candidate.type.startswith("qualified"):
            if candidate.is_named and "comment" not in candidate.type:
                return text(candidate)
        elif candidate.type in ("dot_index_expression", "method_index_expression", "scoped_identifier"):
            return text(candidate)
    return ""


def kind_of(node: "Node") -> str:
    """The word for a definition that people use: function, class, struct, ..."""
    for part, word in _KINDS.items():
        if part in node.type:
            return word
    return "function"


_KINDS = {
    "constructor": "constructor",
    "class": "class",
    "struct": "struct",
    "union": "union",
    "enum": "enum",
    "interface": "interface",
    "trait": "trait",
    "impl_item": "impl",
    "record": "record",
    "namespace": "namespace",
    "module": "module",
    "mod_item": "module",
    "concept": "concept",
    "macro": "macro",
    "preproc_function": "macro",
    "method": "method",
    "type": "type",
    "alias": "type",
    "abstract_definition": "type",
    "primitive_definition": "type",
    "const_item": "constant",
    "static_item": "constant",
}


def _preorder(node: "Node") -> "Iterator[Node]":
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack += reversed(top.children)
