#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a trace of Ullage (*.ullage) with nothing but Python, and prints its takes, events and peak.

It follows docs/trace_file.md and is an example to copy from: read_parts() splits the file into parts, records() yields
the recorded events as tuples. The full reader is `ullage explain FILE`.
usage: read_trace.py FILE...
"""
import json
import struct
import sys
import zlib

ALLOCATION, FREE, OP_BEGIN, OP_END, SAVE, UNSAVE, OUT_OF_MEMORY, MARK, ROLE, BORDER, CHARGE, LINE = range(12)


class Packed:
    """A reader of variable-length numbers: seven bits per byte, the low ones first."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def numbers(self, count):
        return [self.number() for _ in range(count)]

    def signed(self):
        value = self.number()
        return value // 2 if value % 2 == 0 else -(value + 1) // 2

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at]


def read_parts(data):
    """Yields (kind, content) of every part. Raises ValueError if the file is cut off or damaged."""
    if not data.startswith(b"ULLAGE TRACE "):
        raise ValueError("no trace of ullage")
    line = data.index(b"\n")
    if data[13:line] != b"1":
        raise ValueError(f"a trace of version {data[13:line].decode()}, known here is 1")
    at, parts = line + 1, 0
    while True:
        kind, size = struct.unpack_from("<4sQ", data, at) if at + 12 <= len(data) else (b"", 0)
        if not kind or at + 16 + size > len(data):
            raise ValueError(f"cut off or damaged at byte {at}")
        content = data[at + 12:at + 12 + size]
        if zlib.crc32(data[at:at + 12 + size]) != struct.unpack_from("<I", data, at + 12 + size)[0]:
            raise ValueError(f"a part of {size} bytes is damaged at byte {at}")
        at += 16 + size
        if kind == b"DONE":
            if struct.unpack("<Q", content)[0] != parts or at != len(data):
                raise ValueError(f"parts are missing, or something stands behind the end at byte {at}")
            return
        parts += 1
        yield kind.decode(), content


def read_texts(content):
    packed = Packed(content)
    return [""] + [packed.bytes(packed.number()).decode(errors="replace") for _ in range(packed.number())]


def read_shapes(content):
    packed = Packed(content)
    return [None] + [(packed.bytes(1)[0], packed.numbers(packed.number())) for _ in range(packed.number())]


def uses(packed, now, shapes):
    """Yields (storage, use, dtype, sizes) of each tensor; the use is 0 (read), 1 (written) or 2 (output)."""
    for _ in range(packed.number()):
        storage, what = now["storage"] - packed.number(), packed.number()
        shape = shapes[what >> 2] or (packed.bytes(1)[0], packed.numbers(packed.number()))
        yield storage, what & 3, *shape


def records(packed, now, texts, shapes):
    """Yields (kind, flags, microseconds, fields). `now` is the current position: storage, op, micros, thread."""
    while packed.at < len(packed.data):
        tag = packed.bytes(1)[0]
        kind, flags = tag & 15, tag >> 4
        if kind < ROLE:
            now["micros"] += packed.number()
        if kind == ALLOCATION:  # id, bytes, op or None
            size = packed.number()
            fields = now["storage"], size, None if flags & 1 else now["op"] - packed.number()
            now["storage"] += 1
        elif kind in (FREE, SAVE, UNSAVE):
            fields = (now["storage"] - packed.number(),)
        elif kind == OP_BEGIN:  # id, name, node, layer, thread, uses
            names = [texts[i] for i in packed.numbers(3)]
            now["thread"] = packed.number() if flags & 8 else now["thread"]
            fields = now["op"], *names, now["thread"], list(uses(packed, now, shapes))
            now["op"] += 1
        elif kind == OP_END:  # id, nanoseconds, uses
            fields = now["op"] - packed.number(), packed.number(), list(uses(packed, now, shapes))
        elif kind == OUT_OF_MEMORY:
            fields = (packed.number(),)
        elif kind == ROLE:
            fields = now["storage"] - packed.number(), texts[packed.number()]
        elif kind == BORDER:  # phase, knobs
            fields = texts[packed.number()], [(texts[packed.number()], packed.signed()) for _ in range(packed.number())]
        elif kind == CHARGE:
            fields = (packed.signed(),)
        elif kind == LINE:
            fields = (texts[packed.number()],)
        else:
            fields = ()
        yield kind, flags, now["micros"], fields


class Take:
    """Follows the live bytes of one take."""

    def __init__(self, head):
        self.knobs = " ".join(f"{knob['name']}={knob['value']}" for knob in head["knobs"])
        self.now = {"storage": head["first_storage"], "op": head["first_op"], "micros": 0, "thread": 0}
        self.live, self.level, self.peak, self.peak_event = {}, 0, 0, None
        self.storages = self.ops = self.events = self.lost = self.saves = 0

    def born(self, storage, size):
        self.live[storage] = size
        self.level += size
        self.storages += 1

    def died(self, storage):
        self.level -= self.live.pop(storage)

    def event_over(self):
        if self.level > self.peak or (self.level == self.peak and self.peak_event is None):
            self.peak, self.peak_event = self.level, self.events
        self.events += 1

    def before(self, packed):
        storage = -1
        for _ in range(packed.number()):
            storage += 1 + packed.number()
            self.born(storage, packed.number())
        self.peak = self.level

    def chunk(self, packed, texts, shapes):
        begin = packed.numbers(5)
        assert begin[:4] == list(self.now.values()), "events that do not follow those before"
        for kind, _, _, fields in records(packed, self.now, texts, shapes):
            if kind == ALLOCATION:
                self.born(*fields[:2])
            elif kind == FREE:
                self.died(fields[0])
            self.ops += kind == OP_BEGIN
            self.saves += kind == SAVE
            if kind < ROLE:
                self.event_over()

    def gap(self, packed):
        lost, storages, ops, micros, thread = packed.numbers(5)
        storage = self.now["storage"] - 1
        first = self.now["storage"]
        born = []
        for _ in range(packed.number()):
            storage += 1 + packed.number()
            born.append((storage, packed.number()))
        for _ in range(packed.number()):
            self.died(first - packed.number())
        for one in born:
            self.born(*one)
        self.now = {"storage": first + storages, "op": self.now["op"] + ops, "micros": self.now["micros"] + micros,
                    "thread": thread}
        self.lost += lost
        self.event_over()


def main(data):
    head, take, takes = {}, None, []
    for kind, content in read_parts(data):
        if kind == "HEAD":
            head = json.loads(content)
        elif kind == "TEXT":
            texts = read_texts(content)
        elif kind == "SHAP":
            shapes = read_shapes(content)
        elif kind == "TAKE":
            take = Take(json.loads(content))
            takes.append(take)
        elif kind == "FROM":
            take.before(Packed(content))
        elif kind == "EVTS":
            take.chunk(Packed(content), texts, shapes)
        elif kind == "LOST":
            take.gap(Packed(content))
        elif kind == "TEND":
            take.end = json.loads(content)
    print(f"torch {head['torch']}, device {head['device']}, {len(takes)} takes")
    for number, one in enumerate(takes, 1):
        print(f"take {number} {one.knobs}: {one.events} events, {one.lost} lost, {one.storages} storages, "
              f"{one.ops} ops, {one.saves} saves, ended by {one.end['end']}")
        where = "before the first event" if one.peak_event is None else f"after event {one.peak_event}"
        print(f"  peak {one.peak} bytes {where}, {one.level} at the end, process peak {one.end['process_peak_bytes']}")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            try:
                main(file.read())
            except (ValueError, LookupError, AssertionError) as problem:
                sys.exit(f"{path}: {problem}")
