"""What the kernel's tables say of domains, threads and calls.

All is read while the machine stands still, perhaps in the middle of a change: whatever is found
may be damaged, so every walk has an end.
"""

import gdb

from .values import (
    at,
    content,
    inside,
    map_values,
    memory,
    number,
    peel,
    plain,
    static,
    text,
    word,
)

BLOCK = "isolation::domain::ControlBlock"
RECORD = "isolation::call::Record"
THREAD = "framework::task::thread::Thread"

#: Deepest chain of calls that is believed.
DEEPEST = 256

STATES = ["starting", "running", "dying", "gone"]
THREAD_STATES = ["ready", "running", "blocking", "blocked", "woken", "exited"]
#: What `leave` pushes before it stores the stack pointer.
SAVED = ["r15", "r14", "r13", "r12", "rbp", "rbx", "rip"]
#: What a trap pushes, from the lowest address on.
TRAPPED = "r15 r14 r13 r12 r11 r10 r9 r8 rbp rdi rsi rdx rcx rbx rax vector error rip cs rflags rsp ss"
TRAPPED = TRAPPED.split()


class Domain:
    """An instance of a domain."""

    def __init__(self, block):
        self.number = number(block["id"])
        length = number(inside(block["name"], "len"))
        name = number(block["name"]["bytes"][0].address)
        self.name = plain(memory(name, min(length, 32)))
        self.start = number(block["image_start"])
        self.end = number(block["image_end"])
        counters = block["counters"]
        state = number(counters["state"])
        self.state = STATES[state] if state < len(STATES) else f"state {state}"
        self.threads = number(counters["threads"])
        self.address = number(block.address)

    def __contains__(self, address):
        return self.start <= address < self.end

    def __str__(self):
        return f"{self.name} {self.number}" if self.name else "kernel"


def function(name):
    """The address of the function `name`; 0: there is none."""
    found = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name, gdb.SYMBOL_VAR_DOMAIN)
    return number(found.value().address) if found else 0


def block(address):
    """The control block at `address`."""
    return shared(address, BLOCK)


def shared(address, name):
    """The value of the type `name`, which somewhere is in an `Arc`, at `address`."""
    # By its own name gdb finds the module that its methods are in.
    arc = gdb.lookup_type(f"alloc::sync::ArcInner<{name}>")
    kind = next(field.type for field in arc.fields() if field.name == "data")
    return gdb.Value(address).cast(kind.pointer()).dereference()


def domains():
    """All domains in the kernel's table, by number."""
    table = static("isolation::domain::table::TABLE")
    if table is None:
        return []
    arc = f"alloc::sync::Arc<{BLOCK}, alloc::alloc::Global>"
    blocks = inside(table, "data", "blocks")
    return [Domain(content(peel_once(arc_))) for arc_ in map_values(blocks, "u32", arc)]


def peel_once(value):
    """Takes `MaybeUninit` and `ManuallyDrop` away from an `Arc`."""
    while not value.type.strip_typedefs().name.startswith("alloc::sync::Arc<"):
        value = value[[field.name for field in value.type.fields() if field.type.sizeof > 0][0]]
    return value


class Call:
    """A call record."""

    def __init__(self, address):
        record = at(address, RECORD)
        self.address = address
        self.previous = number(record["previous"])
        self.block = number(record["domain"])
        self.domain = Domain(record["domain"].dereference())
        self.sp = number(record["sp"])
        self.registers = {
            name: number(record[name]) for name in ("rbx", "rbp", "r12", "r13", "r14", "r15")
        }
        self.method = "?"
        try:
            method = record["method"].dereference()
            self.method = f"{text(method['interface'])}.{text(method['name'])}"
        except (gdb.error, UnicodeError):
            pass


def calls(top):
    """The calls in which a thread is whose top record is at `top`, from the innermost on."""
    found, seen = [], set()
    while top and top not in seen and len(found) < DEEPEST:
        seen.add(top)
        try:
            call = Call(top)
        except gdb.error:
            break
        found.append(call)
        top = call.previous
    return found


def chain(top):
    """These calls in words."""
    found = [f"{call.domain} ({call.method})" for call in calls(top) if call.method != "?"]
    return " <- ".join(found) if found else "no domain"


def words():
    """Where the words of the running thread are, of the processor or thread that is selected."""
    frame = gdb.newest_frame()
    base = "gs_base"
    try:
        if is_bare() and int(frame.read_register("cs")) & 3:
            base = "k_gs_base"
        return int(frame.read_register(base)) & 0xFFFF_FFFF_FFFF_FFFF
    except (gdb.error, ValueError):
        return 0


def is_bare():
    """Whether this is the machine, and not a Linux process."""
    return static("framework::task::table::TABLE") is not None


def top_here():
    """The top record of the processor or thread that is selected; 0: none."""
    base = words()
    try:
        return word(base) if base else 0
    except gdb.error:
        return 0


class Thread:
    """A kernel thread of the bare machine."""

    def __init__(self, thread):
        self.number = number(thread["id"])
        self.address = number(thread.address)
        name = memory(number(thread["name"][0].address), thread["name"].type.sizeof)
        self.name = plain(name.split(b"\0")[0])
        state = number(thread["state"])
        self.state = THREAD_STATES[state] if state < 6 else f"state {state}"
        self.processor = number(thread["cpu"])
        self.top = number(thread["top_record"])
        self.top_address = number(thread["top_record"].address)
        self.waits_for = number(thread["wait_key"]) if number(thread["wait_bucket"]) else 0
        self.deadline = number(thread["deadline"])
        context = inside(thread["context"], "sp")
        self.sp = number(context)
        self.frame = number(inside(thread["context"], "frame").address)

    def registers(self):
        """The registers with which it goes on, and whether it was interrupted."""
        if self.sp:
            found = {name: word(self.sp + 8 * at) for at, name in enumerate(SAVED)}
            found["rsp"] = self.sp + 8 * len(SAVED)
            return found, False
        return trapped(self.frame), True


def trapped(address):
    """The registers in the trap frame at `address`."""
    found = {name: word(address + 8 * at) for at, name in enumerate(TRAPPED)}
    return found


def threads():
    """All kernel threads of the bare machine."""
    table = static("framework::task::table::TABLE")
    if table is None:
        return []
    slots = inside(table, "value", "slots")
    slot = gdb.lookup_type("framework::task::table::Slot")
    first = gdb.Value(number(inside(slots, "buf", "inner")["ptr"])).cast(slot.pointer())
    shared = gdb.lookup_type(f"alloc::sync::ArcInner<{THREAD}>").pointer()
    found = []
    for index in range(min(number(slots["len"]), 1 << 16)):
        pointer = word(number(first[index]["thread"].address))
        if pointer:
            found.append(Thread(gdb.Value(pointer).cast(shared).dereference()["data"]))
    return found


def running():
    """The number of the thread on each processor, by the processor's number."""
    blocks = static("framework::arch::cpu::BLOCKS")
    if blocks is None:
        return {}
    first, last = blocks.type.range()
    found = {}
    for index in range(first, last + 1):
        thread = number(blocks[index]["sched"][0])
        if thread:
            found[index] = Thread(shared(thread, THREAD))
    return found
