"""Rust's values as gdb shows them, made plain.

The layouts are taken from the debug information, never written down here: where a type has another
field tomorrow, nothing breaks.
"""

import gdb

#: Types that have fields.
WITH_FIELDS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)


def peel(value):
    """What is inside of wrappers such as `UnsafeCell`, `Atomic` or `Arc`: a number or a pointer."""
    while value.type.strip_typedefs().code in WITH_FIELDS:
        fields = [field for field in value.type.fields() if field.type.sizeof > 0]
        if not fields:
            raise gdb.error(f"nothing in a {value.type}")
        value = value[fields[0].name]
    return value


def number(value):
    """The number in a wrapper, or the address that a pointer in it has."""
    return int(peel(value)) & 0xFFFF_FFFF_FFFF_FFFF


def inside(value, *names):
    """The content of the fields `names`, one in the other, where wrappers may stand between."""
    for name in names:
        while name not in [field.name for field in value.type.fields()]:
            fields = [field for field in value.type.fields() if field.type.sizeof > 0]
            if len(fields) != 1:
                raise gdb.error(f"no {name} in a {value.type}")
            value = value[fields[0].name]
        value = value[name]
    return value


def at(address, name):
    """The value of the type `name` at `address`."""
    return gdb.Value(address).cast(gdb.lookup_type(name).pointer()).dereference()


def static(name):
    """The value of the static `name`; `None` if there is none."""
    found = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    return found.value() if found else None


def memory(address, length):
    """The bytes at `address`."""
    return bytes(gdb.selected_inferior().read_memory(address, length))


def word(address):
    """The 64-bit word at `address`."""
    return int.from_bytes(memory(address, 8), "little")


def plain(text):
    """Bytes as text, without what a terminal would take for a command: a domain, or whoever made a
    dump, may have chosen them."""
    decoded = text.decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in decoded)


def text(value):
    """A `&str`."""
    address, length = number(value["data_ptr"]), number(value["length"])
    return plain(memory(address, min(length, 200)))


def content(arc):
    """What an `Arc` shares."""
    pointer = arc
    while pointer.type.code in WITH_FIELDS:
        pointer = inside(pointer, [f.name for f in pointer.type.fields() if f.type.sizeof > 0][0])
    return pointer.dereference()["data"]


#: Address and length of the nodes of maps that were read, for who wants them all.
visited = []


def map_values(tree, key, value):
    """The values of a `BTreeMap` with keys of the type `key`, in order; both types by name."""
    for _, content_ in map_items(tree, key, value):
        yield content_


def map_items(tree, key, value):
    """Its keys, each with its value."""
    node = "alloc::collections::btree::node::{}<" + f"{key}, {value}>"
    leaf, internal = (gdb.lookup_type(node.format(kind)) for kind in ("LeafNode", "InternalNode"))
    root = tree["root"]
    root = root.cast(gdb.lookup_type(root.type.name.removeprefix("core::option::Option<")[:-1]))
    if number(root["node"]):
        yield from _node(number(root["node"]), number(root["height"]), leaf, internal)


def _node(address, height, leaf, internal):
    if height > 8:
        raise gdb.error("a tree that is too high: it is being changed")
    node = gdb.Value(address).cast(leaf.pointer()).dereference()
    visited.append((address, (internal if height else leaf).sizeof))
    length = min(number(node["len"]), 11)
    edges = gdb.Value(address).cast(internal.pointer()).dereference()["edges"] if height else None
    for index in range(length + 1):
        if edges is not None:
            yield from _node(number(edges[index]), height - 1, leaf, internal)
        if index < length:
            yield node["keys"][index], node["vals"][index]
