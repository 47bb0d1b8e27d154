"""python3 compare/pytorch: see README.md beside this file."""
import os
import sys

# The folder that holds this package, instead of the package itself, whose files are no
# modules of their own.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from pytorch.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
