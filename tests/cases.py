# SPDX-License-Identifier: Apache-2.0
"""Runs a Python test that needs no test framework: its cases are functions `test_*` that assert."""
import contextlib
import resource
import sys
import tempfile
import time
import traceback


class Cost:
    """The wall and CPU seconds since it was made, of this process and of the children that it has waited for."""

    def __init__(self):
        self.began, self.spent = time.monotonic(), self._cpu()

    def __str__(self) -> str:
        return f"{time.monotonic() - self.began:.1f} s, {self._cpu() - self.spent:.1f} s of CPU"

    @staticmethod
    def _cpu() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)


def run_cases(cases: dict, *arguments, only: str = "", place=None) -> None:
    """Calls every function `test_*` of `cases` (a module's globals()) in order with `arguments`. `only` holds parts of
    names, separated by commas; then only functions with one of these parts in their name are called.

    With `place`, each function gets place(folder) instead of `arguments`; the folder is new and is removed afterwards.
    After a failure the remaining functions still run. The last line names those that failed, and the exit code says if
    any did.
    """
    chosen = [name for name in cases if name.startswith("test_") and any(part in name for part in only.split(","))]
    if not chosen:
        raise SystemExit(f"no test has {only!r} in its name")
    failed = []
    for name in chosen:
        words, cost = name.removeprefix("test_").replace("_", " "), Cost()
        with tempfile.TemporaryDirectory() if place else contextlib.nullcontext() as folder:
            try:
                cases[name](*([place(folder)] if place else arguments))
                print(f"ok {words} ({cost})", flush=True)
            except Exception:
                traceback.print_exc(file=sys.stdout)
                print("FAILED", words, flush=True)
                failed.append(words)
    if failed:
        raise SystemExit(f"{len(failed)} of {len(chosen)} failed: {', '.join(failed)}")
