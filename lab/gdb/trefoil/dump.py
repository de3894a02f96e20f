"""Dumps: what is in memory of a domain, and what the kernel's tables say, in a file of the form of a
core file, which gdb opens.

In it are the registers of all processors and of all kernel threads, their stacks, the images of all
domains, the private heap of the one that is meant, and what `kernel` reads: so the commands work on
a dump as on a machine.
"""

import os
import re
import struct

import gdb

from . import kernel, values
from .images import PAGE
from .values import inside, map_items, memory, number

#: The order of registers in a note, as Linux has it.
REGISTERS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs rflags rsp ss"
REGISTERS = (REGISTERS + " fs_base gs_base ds es fs gs").split()
#: Kernel threads are called this and their number, so that processors keep theirs.
FIRST_THREAD = 100
#: Most pages of a stack, and of one run of memory that is read in one go.
STACK_PAGES, RUN = 64, 64
CORE, X86_64, NOTE, LOAD, PRSTATUS = 4, 62, 4, 1, 1


class Pages:
    """Pages of memory that a dump has."""

    def __init__(self):
        self.addresses = set()

    def add(self, start, length):
        """Those of `length` bytes at `start`."""
        first = start // PAGE * PAGE
        self.addresses.update(range(first, start + length, PAGE))

    def add_stack(self, sp):
        """Those from the stack pointer on, up to the guard page above."""
        page = sp // PAGE * PAGE
        for at in range(page, page + STACK_PAGES * PAGE, PAGE):
            try:
                memory(at, 1)
            except gdb.error:
                return
            self.addresses.add(at)

    def runs(self):
        """Address and content of runs of pages that follow each other. What cannot be read is left
        out."""
        run = []
        for address in sorted(self.addresses) + [None]:
            if run and (address != run[-1] + PAGE or len(run) == RUN):
                yield from self._read(run)
                run = []
            run.append(address)

    @staticmethod
    def _read(run):
        try:
            yield run[0], memory(run[0], len(run) * PAGE)
        except gdb.error:
            for page in run:
                try:
                    yield page, memory(page, PAGE)
                except gdb.error:
                    pass


def of_kernel(pages):
    """What `kernel` reads: the kernel's own data, its tables, the blocks, the threads."""
    sections = gdb.execute("maintenance info sections .data .bss", to_string=True)
    for start, end in re.findall(r"0x([0-9a-f]{16})->0x([0-9a-f]{16})", sections):
        pages.add(int(start, 16), int(end, 16) - int(start, 16))
    del values.visited[:]
    domains, threads = kernel.domains(), kernel.threads()
    for domain in domains:
        pages.add(domain.address - 16, 4096)
        pages.add(domain.start, domain.end - domain.start)
    size = gdb.lookup_type(f"alloc::sync::ArcInner<{kernel.THREAD}>").sizeof
    for thread in threads:
        pages.add(thread.address - 16, size)
    table = inside(values.static("framework::task::table::TABLE"), "value", "slots")
    slot = gdb.lookup_type("framework::task::table::Slot").sizeof
    pages.add(number(inside(table, "buf", "inner")["ptr"]), number(table["len"]) * slot)
    return domains, threads


def of_heap(pages, domain):
    """The private heap of a domain."""
    runs = inside(kernel.block(domain.address)["memory"], "data", "runs")
    for start, count in map_items(runs, "usize", "usize"):
        pages.add(number(start), number(count) * PAGE)


def note(number_, registers):
    """A note with the registers of a thread."""
    status = bytearray(336)
    struct.pack_into("<I", status, 32, number_)
    for at, name in enumerate(REGISTERS):
        struct.pack_into("<Q", status, 112 + 8 * at, registers.get(name, 0))
    return struct.pack("<III", 5, len(status), PRSTATUS) + b"CORE\0\0\0\0" + bytes(status)


def processors(pages):
    """The notes of all processors; the one that is selected comes first."""
    chosen, found = gdb.selected_thread(), []
    for processor in gdb.selected_inferior().threads():
        processor.switch()
        frame = gdb.newest_frame()
        names = {"rflags": "eflags"}
        registers = {}
        for name in REGISTERS:
            try:
                value = int(frame.read_register(names.get(name, name)))
                registers[name] = value & (1 << 64) - 1
            except (gdb.error, ValueError):
                pass
        pages.add_stack(registers.get("rsp", 0))
        found.append((processor.num != chosen.num, note(processor.num, registers)))
    chosen.switch()
    return [content for _, content in sorted(found, key=lambda one: one[0])]


def waiting(pages, threads):
    """The notes of all threads that do not run."""
    on = {thread.number for thread in kernel.running().values()}
    found = []
    for thread in threads:
        if thread.number in on:
            continue
        registers, _ = thread.registers()
        pages.add_stack(registers["rsp"])
        # What GS leads to is the top record, here as on a processor.
        registers["gs_base"] = thread.top_address
        registers.setdefault("cs", 8)
        found.append(note(FIRST_THREAD + (thread.number & 0xFFFF), registers))
    return found


def write(name, path):
    """Writes a dump of the domain called `name`, or with this number, to the file `path`."""
    pages = Pages()
    domains, threads = of_kernel(pages)
    meant = [domain for domain in domains if name in (domain.name, str(domain.number))]
    if not meant:
        raise gdb.GdbError(f"there is no domain {name}")
    for domain in meant:
        of_heap(pages, domain)
    for address, length in values.visited:
        pages.add(address, length)
    notes = b"".join(processors(pages) + waiting(pages, threads))
    runs = list(pages.runs())
    headers = 64 + 56 * (1 + len(runs))
    # Under another name, which nobody has, so that nobody finds half of one.
    new = f"{path}.new{os.getpid()}"
    with open(new, "xb") as file:
        ident = b"\x7fELF\x02\x01\x01" + bytes(9)
        numbers = (CORE, X86_64, 1, 0, 64, 0, 0, 64, 56, 1 + len(runs), 0, 0, 0)
        file.write(ident + struct.pack("<HHIQQQIHHHHHH", *numbers))
        file.write(struct.pack("<IIQQQQQQ", NOTE, 0, headers, 0, 0, len(notes), 0, 4))
        at = headers + len(notes)
        for address, content in runs:
            length = len(content)
            file.write(struct.pack("<IIQQQQQQ", LOAD, 7, at, address, 0, length, length, 1))
            at += length
        file.write(notes)
        for _, content in runs:
            file.write(content)
    os.replace(new, path)
    gdb.write(f"trefoil: {name} is in {path}, {at} bytes\n")
