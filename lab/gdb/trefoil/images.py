"""Symbols that are added when an image is placed and removed when it goes.

The kernel calls a function that does nothing, `image_changes`, on which a breakpoint stands; and
whenever the machine stops, the table of domains is compared with what is known. So nothing is lost
when gdb comes late, and nothing when it looks away.
"""

import os

import gdb

from . import elf, kernel
from .values import memory

HOOK = "isolation::domain::debugger::image_changes"
LAUNCHER = "hosted::launch::core_is_placed"
#: What the launcher uses: faults of domains, ticks, stops of all threads.
SIGNALS = "SIGSEGV SIGBUS SIGFPE SIGILL SIG35 SIG36 SIG37"
PLACED, LEFT, DIED = 1, 2, 3
#: The instruction that gdb writes into a process where a breakpoint is.
TRAP = 0xCC
PAGE = 4096
#: Bytes of code that are compared in one go.
PIECE = 1 << 16

#: Folders with symbols; the first that has a fitting file is taken.
folders = []
#: Where dumps of domains go when they die, by their names.
dumps = {}
#: Whether nothing but deaths is of interest: then no symbols of domains are looked for.
only_deaths = False
#: The images that are there, by their start.
images = {}


class Image:
    """An image in memory, with its symbols if there are any."""

    def __init__(self, start, end, domain):
        self.start, self.end, self.domain = start, end, domain
        self.file, self.why = None, "no file fits it"
        try:
            self._find()
        except (gdb.error, ValueError) as error:
            self.why = str(error)

    def _find(self):
        loaded = elf.File("", memory(self.start, PAGE))
        for file in (file for folder in folders for file in folder.files()):
            if file.key != loaded.key:
                continue
            differs = self._differs(file)
            if differs is None:
                self.file = file
                return
            self.why = f"{file.name} is of another build (code differs at {differs:#x})"
        namesake = [f.path for folder in folders for f in folder.files() if f.name == self.name]
        if namesake and self.why == "no file fits it":
            self.why = f"{self.name} is of another build"

    @property
    def name(self):
        """What its file is probably called, if there is none."""
        return self.domain.name if self.domain else "?"

    def _differs(self, file):
        """Where code in memory is not what `file` has; `None`: nowhere."""
        for address, wanted in file.code_bytes():
            for at in range(0, len(wanted), PIECE):
                part = wanted[at : at + PIECE]
                start = self.start + address + at
                found = memory(start, len(part))
                if found == part:
                    continue
                for offset in (i for i, (a, b) in enumerate(zip(found, part)) if a != b):
                    if kernel.is_bare() or found[offset] != TRAP:
                        return address + at + offset
                    # A breakpoint of ours that outlived its symbols, in an image that was kept.
                    original = bytes([part[offset]])
                    gdb.selected_inferior().write_memory(start + offset, original)
        return None

    def add(self):
        """Tells gdb of its symbols."""
        if self.file is None:
            return
        line = f"add-symbol-file {self.file.path} -o {self.start:#x}"
        try:
            gdb.execute(line, to_string=True)
        except gdb.error as error:
            self.file, self.why = None, str(error)

    def remove(self):
        """Has gdb forget them."""
        if self.file is None:
            return
        address = self.start + (self.file.code[0][0] if self.file.code else 0)
        try:
            gdb.execute(f"remove-symbol-file -a {address:#x}", to_string=True)
        except gdb.error:
            pass  # Somebody removed them by hand.


def image_at(address):
    """The image that has `address`; `None`: no domain's."""
    for image in images.values():
        if image.start <= address < image.end:
            return image
    return None


def placed(domain):
    """An image was placed for `domain`, or was met."""
    known = images.get(domain.start)
    if known and known.domain.number == domain.number:
        known.domain = domain
        return
    for other in [i for i in images.values() if i.start < domain.end and domain.start < i.end]:
        left(other.start)
    image = Image(domain.start, domain.end, domain)
    image.add()
    images[domain.start] = image


def left(start):
    """The image at `start` is nobody's any more."""
    image = images.pop(start, None)
    if image:
        image.remove()


def refresh():
    """Compares what is known with the kernel's table."""
    if only_deaths:
        return
    try:
        there = {domain.start: domain for domain in kernel.domains() if domain.start}
    except (gdb.error, RuntimeError):
        return  # Before the system has booted, or in the middle of a change.
    for start in [start for start in images if start not in there]:
        left(start)
    for domain in there.values():
        placed(domain)


class Hook(gdb.Breakpoint):
    """Stands on the function that the kernel calls; never stops anybody."""

    def __init__(self, place):
        super().__init__(place, internal=True)
        self.silent = True

    def stop(self):
        frame = gdb.newest_frame()
        change, block = (int(frame.read_register(name)) for name in ("rdi", "rsi"))
        if only_deaths and change & 0xFF != DIED:
            return False
        try:
            domain = kernel.Domain(kernel.block(block & (1 << 64) - 1))
            if change & 0xFF == PLACED:
                placed(domain)
            elif change & 0xFF == DIED:
                died(domain)
            else:
                left(domain.start)
        except (gdb.error, RuntimeError, OSError, ValueError) as error:
            gdb.write(f"trefoil: an image has changed, but it cannot be read: {error}\n")
        return False


def died(domain):
    """`domain` has died, and nobody has left it yet."""
    path = dumps.get(domain.name)
    if path:
        from . import dump

        dump.write(str(domain.number), path)


class Core(gdb.Breakpoint):
    """Stands where the launcher of a Linux process has placed the core; never stops anybody."""

    def __init__(self):
        super().__init__(LAUNCHER, internal=True)
        self.silent = True

    def stop(self):
        start = int(gdb.newest_frame().read_register("rdi")) & (1 << 64) - 1
        core = os.path.join(os.environ.get("TREFOIL_OUT", "target/trefoil"), "hosted-core")
        try:
            gdb.execute(f"add-symbol-file {core} -o {start:#x}", to_string=True)
        except gdb.error as error:
            gdb.write(f"trefoil: no symbols of the core: {error}\n")
        return False


def use(names):
    """Has symbols looked for in these folders, and nowhere else."""
    for start in list(images):
        left(start)
    folders[:] = [elf.Folder(os.path.abspath(name)) for name in names]
    refresh()


def usual_folders():
    """Where the build leaves symbols, as seen from the kernel's own file."""
    outs = [os.path.dirname(file.filename or "") for file in gdb.objfiles()]
    for out in [os.environ.get("TREFOIL_OUT", "")] + outs:
        yield os.path.join(out, "cargo/x86_64-unknown-none/release")


def install():
    """Sets the breakpoint, and looks for images at every stop."""
    folders.extend(elf.Folder(folder) for folder in dict.fromkeys(usual_folders()))
    gdb.events.stop.connect(lambda _event: refresh())
    gdb.events.exited.connect(lambda _event: [left(start) for start in list(images)])
    # At the first instruction, where the arguments are in their registers. In a Linux process it is
    # not there yet, and gdb looks for it by its name.
    hook = kernel.function(HOOK)
    Hook(f"*{hook:#x}" if hook else HOOK)
    if not hook:
        Core()
        gdb.execute(f"handle {SIGNALS} nostop noprint pass", to_string=True)
