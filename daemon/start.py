"""The program's first lines: from here on Ctrl-C ends it in a line, also while the rest is still imported."""

import sys


def main() -> int:
    """Run the command line and return its exit status."""
    try:
        from specd.daemon.cli import main as run

        return run()
    except KeyboardInterrupt:  # `run` catches those that come later
        print("specd: interrupted before it began; nothing was changed.", file=sys.stderr)
        return 130
