"""The rewrite is cheap to import: `specd edit` pays for each module before the first key is read."""

import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[3] / "src"
HEAVY = ["torch", "transformers", "tokenizers", "numpy", "pygls", "tree_sitter", "asyncio", "aiohttp"]


def test_importing_the_rewrite_loads_neither_a_parser_nor_anything_heavy() -> None:
    names = [path.stem for path in (SRC.parent / "daemon" / "rewrite").glob("*.py") if path.stem != "__init__"]
    assert "stream" in names
    code = "import sys\n" + "".join(f"import specd.daemon.rewrite.{name}\n" for name in names)
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SRC)}
    )
    assert done.stdout.strip() == "[]"
