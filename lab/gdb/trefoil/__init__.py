"""Trefoil in gdb.

- `values`: Rust's values, as gdb shows them, made plain;
- `kernel`: what the kernel's tables say of domains, threads and calls;
- `elf`: the files with symbols, and which of them an image in memory was made of;
- `images`: symbols that are added when an image is placed and removed when it goes;
- `unwind`: frames where the debug information ends;
- `stacks`: the stacks of threads that do not run;
- `commands`: what is typed.
"""


def start():
    """Sets gdb up. Called once, when the kernel's file is there or comes by `file`."""
    import gdb

    for setting in [
        "confirm off",
        "pagination off",
        "breakpoint pending on",
        "print thread-events off",
        "language rust",
        "backtrace past-entry off",
    ]:
        gdb.execute("set " + setting, to_string=True)
    from . import commands, images, unwind

    unwind.install()
    images.install()
    commands.install()
