"""What gdb sources to know Trefoil: the commands, the unwinder, the symbols that come and go.

`cargo xtask run --gdb` does it; by hand it is `gdb -x lab/gdb/start.py target/trefoil/trefoil`.
docs/guide/debugging.md shows each command at work.
"""

import os
import sys

# Nothing is left in the source folder.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trefoil  # noqa: E402

trefoil.start()
