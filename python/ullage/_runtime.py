# SPDX-License-Identifier: Apache-2.0
"""The runtime's C interface (src/ullage/runtime/c_api.h), if this process has the runtime."""
from __future__ import annotations

import ctypes
import dataclasses
import os

_NAME = "libullage_torch.so"


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes at one moment."""
    budget: int | None
    """Stated for the whole tree of processes; None: unlimited."""
    resident: int
    """Resident bytes of this process, as the operating system counts them. If the budget is a card's: the bytes of the
    card that this process holds."""
    live: int
    """Bytes of tensors in the pool, evicted or not."""


class _Memory(ctypes.Structure):
    _fields_ = [("budget", ctypes.c_uint64), ("resident", ctypes.c_uint64), ("live", ctypes.c_uint64)]


def library() -> ctypes.CDLL | None:
    """Returns the runtime if this process has it: it is loaded when torch is imported under `ullage run`, or by
    ullage.run()."""
    global _found
    if _found is None:
        try:
            _found = ctypes.CDLL(_NAME, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
        except OSError:
            return None
    return _found


_found: ctypes.CDLL | None = None


def active() -> bool:
    """Returns true if torch's allocator, for the CPU or for a card, is a budgeted pool in this process."""
    runtime = library()
    return runtime is not None and runtime.ullage_active() == 1


def report() -> Memory | None:
    """Returns what this process holds now; None in a plain run."""
    runtime = library()
    if runtime is None or runtime.ullage_active() != 1:
        return None
    now = _Memory()
    runtime.ullage_memory_status(ctypes.byref(now))
    return Memory(now.budget or None, now.resident, now.live)


def mark_step() -> None:
    """Marks the end of a step. Without it, a call of the program's optimizer ends one, or a turn of its loop."""
    runtime = library()
    if runtime is not None:
        runtime.ullage_mark_step()
