# SPDX-License-Identifier: Apache-2.0
"""Begins a budget in a running process: ullage.run()."""
from __future__ import annotations

import ctypes
import os
import sys
import types
import warnings

from ullage import _runtime
from ullage._command import library


class Budget:
    """A budget of this process, in force from its creation. As a context manager it is lifted at the end of the
    block."""

    def __init__(self, outer: int | None):
        self._outer = outer  # the budget in force before this one; None: there was none

    def __enter__(self) -> Budget:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.lift()

    def lift(self) -> None:
        """Restores the budget before this one. If there was none, lifts the budget and writes what was recorded so far.
        Spilled tensors are restored when they are used."""
        runtime = _runtime.library()
        if runtime is None or self._outer == _NOT_OURS:
            return
        if self._outer is None:
            runtime.ullage_lift()
        else:
            _begin(runtime, str(self._outer), None, None)


_NOT_OURS = -1  # the budget belongs to `ullage run`, and stays


def run(memory: int | str, *, spill: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None) -> Budget:
    """Keeps this process within `memory` from now on, as `ullage run --memory` does from a program's start.

        with ullage.run(memory="3GiB"):
            train()

    memory: bytes of the whole process, as the operating system counts them; a number, or "3GiB".
    spill: the folder for tensors that do not fit, "FOLDER:SIZE" with a limit, or "none"; None: the default of `ullage
    run`.
    record: the file to record the program in, for `ullage explain`, `ullage plan` and ullage.explain().

    Tensors made before this call stay where they are: they count, but cannot be evicted. Only this process is kept
    within the budget; processes that it starts count only if they are forks. A second call changes the bytes alone;
    spill and record stay those of the first. In a process of `ullage run` that budget stays in force, and a warning
    says so.

    Raises ValueError if the budget cannot be met; the message says what would suffice. Raises RuntimeError if Ullage
    was not built against this torch, and FileNotFoundError if Ullage's libraries are not installed.
    """
    import torch  # noqa: F401  the runtime needs it loaded

    if _runtime.active() and "ULLAGE_LEDGER" in os.environ:
        warnings.warn(f"this process was started by `ullage run`; its budget stays in force, not that of {memory}", stacklevel=2)
        return Budget(_NOT_OURS)
    if _runtime.library() is None:
        preload = ctypes.CDLL(str(library("libullage_preload.so")))
        preload.ullage_open_runtime.restype = ctypes.c_char_p
        why = preload.ullage_open_runtime()
        if why is not None:
            raise RuntimeError(why.decode())
    now = _runtime.report()
    _begin(_runtime.library(), str(memory), spill, record)
    return Budget(now.budget if now is not None else None)


def _begin(runtime: ctypes.CDLL, memory: str, spill: str | os.PathLike[str] | None,
           record: str | os.PathLike[str] | None) -> None:
    runtime.ullage_begin.restype = ctypes.c_char_p
    sys.stdout.flush()
    why = runtime.ullage_begin(memory.encode(), None if spill is None else os.fspath(spill).encode(),
                               None if record is None else os.path.abspath(record).encode())
    if why is not None:
        raise ValueError(why.decode())
