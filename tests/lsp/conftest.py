"""Fixtures of the language server's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `import slow_text`
