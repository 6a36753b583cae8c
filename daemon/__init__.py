"""specd.daemon: the warm process, its clients, and the shell command.

Importing this package imports nothing heavy: `specd edit` and `specd lsp` rely on that. Only `worker` imports the
engine.
"""

__version__ = "0.1.0"
