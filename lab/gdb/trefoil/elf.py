"""The files with symbols, and which of them an image in memory was made of.

An image has its ELF header and its program headers in its first page. They, and then every byte of
its code, are compared with the files that the build left: so a file of another build is never
taken for the right one, whatever its name is.
"""

import os
import struct

HEADER = 64
PROGRAM_HEADER = 56
LOAD, EXECUTE = 1, 1
#: Bytes of a file that are read to know what it is.
START = 4096


class File:
    """An ELF file, perhaps as it lies in memory: 64-bit, little-endian."""

    def __init__(self, path, start):
        self.path = path
        if len(start) < HEADER or start[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not an ELF file")
        entry, table = struct.unpack_from("<QQ", start, 24)
        size, count = struct.unpack_from("<HH", start, 54)
        headers = start[table : table + size * count]
        if size != PROGRAM_HEADER or len(headers) != size * count:
            raise ValueError("no program headers where they should be")
        #: What files have in common that could be the same.
        self.key = (entry, headers)
        self.code = []
        for at in range(0, len(headers), size):
            kind, flags, offset, address = struct.unpack_from("<IIQQ", headers, at)
            (length,) = struct.unpack_from("<Q", headers, at + 32)
            if kind == LOAD and flags & EXECUTE:
                self.code.append((address, offset, length))

    @property
    def name(self):
        """Its name without the folder."""
        return os.path.basename(self.path)

    def code_bytes(self):
        """Each run of code: its address in the image, and its bytes."""
        with open(self.path, "rb") as file:
            for address, offset, length in self.code:
                file.seek(offset)
                yield address, file.read(length)


class Folder:
    """A folder of files with symbols. What is in it is looked at again when it has changed."""

    def __init__(self, path):
        self.path = path
        self.seen = {}

    def files(self):
        """All ELF files in it."""
        try:
            entries = [entry for entry in os.scandir(self.path) if entry.is_file()]
        except OSError:
            return []
        found = []
        for entry in entries:
            status = entry.stat()
            key = (status.st_mtime_ns, status.st_size)
            known = self.seen.get(entry.path)
            if known is None or known[0] != key:
                known = (key, read(entry.path))
                self.seen[entry.path] = known
            if known[1] is not None:
                found.append(known[1])
        return found


def read(path):
    """The ELF file at `path`; `None` if it is none."""
    try:
        with open(path, "rb") as file:
            return File(path, file.read(START))
    except (OSError, ValueError, struct.error):
        return None
