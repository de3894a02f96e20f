"""Frames where the debug information ends.

A call from one domain into another stays on its stack, so gdb goes through proxies by itself. Three
places need help: the trampolines, which are assembly; code without symbols, out of which the call
record leads, since it holds what the proxy had in its registers; and a thread that does not run, of
which the kernel has the registers.
"""

import gdb
import gdb.unwinder

from . import images, kernel
from .values import memory, word

#: Registers of which an unwinder says the caller's values.
NAMES = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
GUARDED = "guarded_trampoline"


class FrameId:
    """What tells frames apart."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class View:
    """The registers that stand for the caller of frame 0, while a thread is looked at."""

    registers = None
    top = 0
    #: Where the processor is, whose frames come first.
    place = None

    @classmethod
    def set(cls, registers, top=0):
        """Looks at the thread with these registers and this top record; `None`: no more."""
        cls.registers = None
        gdb.invalidate_cached_frames()
        if registers:
            frame = gdb.newest_frame()
            cls.place = tuple(register(frame, name) for name in ("rip", "rsp"))
            cls.registers, cls.top = registers, top
            gdb.invalidate_cached_frames()

    @classmethod
    def first(cls):
        """The innermost frame of what is looked at."""
        frame = gdb.newest_frame()
        if cls.registers:
            while frame is not None and frame.type() == gdb.INLINE_FRAME:
                frame = frame.older()
            frame = frame.older() if frame is not None else None
        return frame


def register(frame, name):
    """An unsigned register of a frame, of those that there are or of those that are unwound."""
    return int(frame.read_register(name)) & (1 << 64) - 1


def top():
    """The top record of whoever is looked at."""
    return View.top if View.registers else kernel.top_here()


def answer(pending, registers, sp, pc):
    """What an unwinder answers: the frame is known by `sp` and `pc`, its caller has `registers`."""
    info = pending.create_unwind_info(FrameId(gdb.Value(sp), gdb.Value(pc)))
    for name in NAMES:
        if name in registers:
            kind = pending.read_register(name).type
            value = gdb.Value(registers[name].to_bytes(8, "little"), kind)
            info.add_saved_register(name, value)
    return info


class Saved(gdb.unwinder.Unwinder):
    """From frame 0 to the thread that is looked at."""

    def __init__(self):
        super().__init__("trefoil-thread")

    def __call__(self, pending):
        registers = View.registers
        if registers is None or View.place != (register(pending, "rip"), register(pending, "rsp")):
            return None
        return answer(pending, registers, registers["rsp"] - 64, registers["rip"])


class Records(gdb.unwinder.Unwinder):
    """Out of a trampoline, and out of code without symbols by the call record."""

    def __init__(self):
        super().__init__("trefoil-records")

    def __call__(self, pending):
        pc, sp = register(pending, "rip"), register(pending, "rsp")
        try:
            image = images.image_at(pc)
            if image is not None:
                return self._out_of(pending, sp, pc) if image.file is None else None
            if sp and pc > 2 and self._is_guarded(pc):
                # The trampoline has eight bytes of its own below the address it returns to.
                caller = {"rsp": sp + 16, "rip": word(sp + 8)}
                return answer(pending, caller | self._kept(pending), sp + 16, pc)
        except gdb.error:
            pass
        return None

    @staticmethod
    def _is_guarded(pc):
        # `call rsi` is the one call of the trampoline.
        is_call = memory(pc - 2, 2) == b"\xff\xd6"
        return is_call and GUARDED in gdb.execute(f"info symbol {pc:#x}", to_string=True)

    @staticmethod
    def _kept(pending):
        names = ("rbx", "rbp", "r12", "r13", "r14", "r15")
        return {name: register(pending, name) for name in names}

    @staticmethod
    def _out_of(pending, sp, pc):
        """The proxy that called the domain is the one whose record is next above `sp`."""
        above = [call for call in kernel.calls(top()) if call.sp >= sp]
        if not above:
            return None
        call = min(above, key=lambda call: call.sp)
        caller = call.registers | {"rsp": call.sp + 8, "rip": word(call.sp)}
        return answer(pending, caller, call.sp + 8, pc)


def install():
    """Makes gdb use them."""
    for unwinder in (Records(), Saved()):
        gdb.unwinder.register_unwinder(None, unwinder, replace=True)
