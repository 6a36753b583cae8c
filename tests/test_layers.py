"""The arrows of the design: who may import whom, read from the source. A wrong arrow means that the rooms are wrong."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("engine", "daemon", "lsp", "mini")

# What a module may import of specd, by the longest matching prefix of its own name.
MAY_IMPORT = {
    "specd.engine": ("specd.engine",),
    "specd.engine.kernels": ("specd.engine.kernels",),
    "specd.mini": ("specd.mini", "specd.engine", "specd.daemon.rewrite"),
    "specd.daemon": ("specd.daemon", "specd.mini"),
    "specd.daemon.rewrite": ("specd.daemon.rewrite",),
    "specd.daemon.worker": ("specd.daemon", "specd.mini", "specd.engine"),
    "specd.lsp": ("specd.lsp", "specd.daemon.client", "specd.daemon.protocol", "specd.daemon.rewrite"),
}
# Libraries that only some rooms may import: elsewhere they would cost a client its start-up, or the engine its freedom.
ONLY_IN = {
    "torch": ("specd.engine", "specd.mini", "specd.daemon.worker"),
    "transformers": ("specd.engine", "specd.mini"),
    "safetensors": ("specd.engine", "specd.mini"),
    "pygls": ("specd.lsp",),
    "lsprotocol": ("specd.lsp",),
    "aiohttp": ("specd.daemon",),
    "tree_sitter": ("specd.daemon.rewrite",),
    "watchfiles": ("specd.daemon",),
}


def modules() -> Iterator[tuple[str, Path]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = ("specd", *path.relative_to(ROOT).with_suffix("").parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Full names of what a file imports; with top_level, only what importing the file itself imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes: Iterator[ast.AST] = iter(ast.walk(tree))
    if top_level:
        nodes = (
            inner
            for node in tree.body
            if not isinstance(node, ast.FunctionDef | ast.ClassDef)
            for inner in ast.walk(node)
        )
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the arrows"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def rule(name: str) -> tuple[str, ...]:
    return MAY_IMPORT[max((prefix for prefix in MAY_IMPORT if within(name, prefix)), key=len)]


def violations(name: str, imported: set[str]) -> list[str]:
    bad = [
        target for target in imported if within(target, "specd") and not any(within(target, ok) for ok in rule(name))
    ]
    for library, homes in ONLY_IN.items():
        if not any(within(name, home) for home in homes):
            bad.extend(target for target in imported if target.split(".")[0] == library)
    bad.extend(target for target in imported if target.split(".")[0] in ROOMS)
    return bad


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_follow_the_arrows(name: str, path: Path) -> None:
    assert violations(name, imports(path)) == []


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("specd.engine.model", "specd.daemon.rewrite.prompt"),
        ("specd.engine.kernels.cpu", "specd.engine.ops"),
        ("specd.daemon.session", "specd.engine.generate"),
        ("specd.daemon.rewrite.hunks", "specd.daemon.client"),
        ("specd.lsp.server", "specd.daemon.worker"),
        ("specd.lsp.server", "torch.nn"),
        ("specd.daemon.client", "torch"),
        ("specd.mini.train", "specd.daemon.worker"),
        ("specd.engine.model", "engine.ops"),
    ],
)
def test_a_wrong_arrow_is_seen(name: str, target: str) -> None:
    assert violations(name, {target}) == [target]


def test_every_room_is_looked_at() -> None:
    names = {name for name, _ in modules()}
    assert {"specd.engine.generate", "specd.daemon.rewrite.prompt", "specd.daemon.worker"} <= names
    assert sys.stdlib_module_names.isdisjoint(ROOMS)
