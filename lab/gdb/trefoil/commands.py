"""What is typed: `info domains`, `trefoil stacks` and the like."""

import gdb
from gdb.FrameDecorator import FrameDecorator

from . import dump, images, kernel, stacks, unwind


class Command(gdb.Command):
    """A command whose name and help are those of a function."""

    def __init__(self, name, function, kind=gdb.COMMAND_STATUS, prefix=False):
        self.function, self.__doc__ = function, function.__doc__
        super().__init__(name, kind, gdb.COMPLETE_NONE, prefix)

    def invoke(self, argument, _from_tty):
        try:
            self.function(argument.strip())
        except gdb.MemoryError as error:
            raise gdb.GdbError(f"the kernel's tables cannot be read, as before it has booted: {error}")


def info_domains(_argument):
    """All domains: number, name, state, where the image is, threads, symbols."""
    images.refresh()
    there = kernel.domains()
    gdb.write(f"{'No':<5}{'Name':<16}{'State':<10}{'Base':<20}{'Threads':<9}Symbols\n")
    for domain in there:
        image = images.images.get(domain.start)
        symbols = "no image" if image is None else image.file.path if image.file else f"none: {image.why}"
        base = f"{domain.start:#x}" if domain.start else "-"
        gdb.write(
            f"{domain.number:<5}{domain.name:<16}{domain.state:<10}{base:<20}{domain.threads:<9}{symbols}\n"
        )


def trefoil(_argument):
    """Trefoil's own commands; `help trefoil` lists them."""
    gdb.execute("help trefoil")


def all_stacks(_argument):
    """The stacks of all processors and of all threads that do not run."""
    images.refresh()
    if kernel.is_bare():
        stacks.processors()
        stacks.threads()
    else:
        gdb.execute("thread apply all backtrace")


def threads(_argument):
    """The stacks of all kernel threads that do not run, with their chains of domains."""
    images.refresh()
    stacks.threads()


def thread(argument):
    """Looks at the kernel thread with this number: frames from 1 on are its own. `off` ends it."""
    if argument in ("", "off"):
        unwind.View.set(None)
        return
    for found in kernel.threads():
        if str(found.number & 0xFFFF) == argument:
            registers, interrupted = found.registers()
            registers["rip"] += 1 if interrupted else 0
            unwind.View.set(registers, found.top)
            gdb.write(f"thread {argument} {found.name}: frame 0 is the processor's, the rest its own\n")
            return
    raise gdb.GdbError(f"there is no thread {argument}")


def calls(_argument):
    """The calls between domains in which the running thread is, innermost first."""
    for number, call in enumerate(kernel.calls(unwind.top())):
        gdb.write(f"#{number:<3}{call.domain}: {call.method}\n")


def symbols(argument):
    """Has symbols of domains looked for in these folders, and nowhere else."""
    names = gdb.string_to_argv(argument)
    if not names:
        raise gdb.GdbError("which folder?")
    images.use(names)


def write_dump(argument):
    """Writes a dump of the domain with this name or number to a file: trefoil dump ext2 FILE."""
    names = gdb.string_to_argv(argument)
    if len(names) != 2:
        raise gdb.GdbError("which domain, to which file?")
    if not kernel.is_bare():
        raise gdb.GdbError("only of the booted system; gdb's `gcore` dumps a Linux process")
    dump.write(*names)


def dump_at_death(argument):
    """Has a dump written when a domain of this name dies: trefoil dump-at-death ext2 FILE."""
    names = gdb.string_to_argv(argument)
    if len(names) != 2:
        raise gdb.GdbError("which domain, to which file?")
    images.dumps[names[0]] = names[1]


def only_deaths(_argument):
    """Looks at nothing but deaths from now on: programs start sooner, without their symbols."""
    images.only_deaths = True


class Named(FrameDecorator):
    """A frame with its domain in front of the function, and its file as all else here names it."""

    def function(self):
        frame = self.inferior_frame()
        image = images.image_at(frame.pc())
        name = super().function()
        return f"{image.domain}: {name}" if image and isinstance(name, str) else name

    def filename(self):
        symtab = self.inferior_frame().find_sal().symtab
        return stacks.file_name(symtab) if symtab else super().filename()


class Filter:
    """Puts the domain into every line of a backtrace."""

    name, priority, enabled = "trefoil", 100, True

    def filter(self, frames):
        """The same frames, with their domains."""
        return map(Named, frames)


def forget_view(_event):
    """What was looked at is not as it was."""
    if unwind.View.registers is not None:
        unwind.View.set(None)


def install():
    """Makes gdb know them."""
    Command("info domains", info_domains)
    Command("trefoil", trefoil, prefix=True)
    Command("trefoil stacks", all_stacks)
    Command("trefoil threads", threads)
    Command("trefoil thread", thread)
    Command("trefoil calls", calls)
    Command("trefoil symbols", symbols)
    Command("trefoil dump", write_dump)
    Command("trefoil dump-at-death", dump_at_death)
    Command("trefoil only-deaths", only_deaths)
    gdb.frame_filters[Filter.name] = Filter()
    gdb.events.cont.connect(forget_view)
