"""The stacks of all threads, in words: of those on a processor, and of those that do not run."""

import os
import re

import gdb

from . import images, kernel, unwind
from .dump import FIRST_THREAD

#: Most frames that are shown of a stack.
DEEPEST = 64
#: What tells crates of one name apart, in names that are not demangled for people.
HASH = re.compile(r"\[[0-9a-f]{16}\]")
TRAP = ("trap_common", "trap_paranoid", "trap_stubs")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def file_name(symtab):
    """A source file, relative to the repository or to the compiler's library."""
    name = symtab.fullname()
    for start, instead in [(ROOT + "/", ""), ("/library/", "rust/")]:
        at = name.find(start)
        if at >= 0:
            name = instead + name[at + len(start) :]
    return name


def place(frame):
    """File and line of a frame."""
    sal = frame.find_sal()
    return f" at {file_name(sal.symtab)}:{sal.line}" if sal.symtab else ""


def without_types(name):
    """A function's name without the types for which it was made, which can fill the screen."""
    kept, depth = [], 0
    for at, letter in enumerate(name):
        if letter == "<":
            depth += 1
        elif letter == ">" and name[at - 1] != "-":
            depth -= 1
        elif depth == 0:
            kept.append(letter)
    return "".join(kept) or name


def describe(frame, pc):
    """A frame in words. `pc` is where the thread is, if it was not called from there."""
    image = images.image_at(pc)
    name = frame.name()
    if name is None:
        where = f"+{pc - image.start:#x}" if image else ""
        name = f"?? ({pc:#x}{where})"
    name = without_types(HASH.sub("", name))
    return (f"{image.domain}: " if image else "") + name + place(frame)


def frames():
    """The frames of what is looked at, up to a trap, and where the trap's registers are."""
    lines, trap = [], None
    frame = unwind.View.first()
    while frame is not None and len(lines) < DEEPEST:
        lines.append(describe(frame, frame.pc()))
        if frame.type() != gdb.INLINE_FRAME and frame.name() in TRAP:
            trap = unwind.register(frame, "rsp")
            break
        try:
            frame = frame.older()
        except gdb.error as error:
            lines.append(f"({error})")
            break
    return lines, trap


def show(top, deep=0):
    """The lines of the stack of what is looked at, beyond traps, too."""
    lines, trap = frames()
    if trap is None or deep > 4:
        return lines
    try:
        registers = kernel.trapped(trap)
        if registers["cs"] & 3:
            return lines + [f"(ring 3, at {registers['rip']:#x})"]
        return lines + ["(interrupted:)"] + of(registers, True, top, deep + 1)
    except gdb.error as error:
        return lines + [f"({error})"]


def of(registers, interrupted, top, deep=0):
    """The lines of the stack of a thread with these registers."""
    found = dict(registers)
    # What gdb takes for a return address stands behind the call.
    found["rip"] += 1 if interrupted else 0
    unwind.View.set(found, top)
    try:
        return show(top, deep)
    except gdb.error as error:
        return [f"({error})"]
    finally:
        unwind.View.set(None)


def write(lines):
    """Prints the lines of a stack."""
    for number, line in enumerate(lines):
        gdb.write(f"    #{number:<2} {line}\n")


def processors():
    """Prints where each processor is."""
    on = kernel.running()
    chosen = gdb.selected_thread()
    for processor in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
        # In a dump threads that do not run have registers, too.
        if processor.ptid[1] >= FIRST_THREAD:
            continue
        processor.switch()
        index = processor.num - 1
        thread = on.get(index)
        what = f"thread {thread.number & 0xFFFF} {thread.name}" if thread else "no thread"
        gdb.write(f"processor {index}: {what}, in {kernel.chain(kernel.top_here())}\n")
        write(show(kernel.top_here()))
    if chosen:
        chosen.switch()


def waiting(thread):
    """What a thread that does not run waits for, in words."""
    words = thread.state
    if thread.waits_for:
        words += f" at {thread.waits_for:#x}"
        if thread.deadline < 1 << 63:
            words += f" until {thread.deadline / 1e9:.6f} s"
    return words


def threads():
    """Prints the stack of every thread that does not run."""
    on = {thread.number for thread in kernel.running().values()}
    for thread in kernel.threads():
        if thread.number in on:
            continue
        number = thread.number & 0xFFFF
        gdb.write(f"thread {number} {thread.name}: {waiting(thread)}, in {kernel.chain(thread.top)}\n")
        try:
            registers, interrupted = thread.registers()
            write(of(registers, interrupted, thread.top))
        except gdb.error as error:
            gdb.write(f"    ({error})\n")
