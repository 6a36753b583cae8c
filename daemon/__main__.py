"""`python -m specd.daemon` is the `specd` command; the daemon is started this way, by the interpreter of its client."""

import sys

from specd.daemon.start import main

if __name__ == "__main__":
    sys.exit(main())
