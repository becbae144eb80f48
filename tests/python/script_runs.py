# SPDX-License-Identifier: Apache-2.0
"""Runs Python scripts, plain and under `ullage run`, and judges what came of it. On top of tests/nets/runs.py.

A script is ordinary: it prints to stdout and saves its last state with torch.save to what `--out` says.
"""
import collections.abc
import dataclasses
import hashlib
import os
import pathlib
import re
import shlex
import sys
import threading

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "nets"))
from runs import MIB, Run, Runs, differences, kept_its_budget  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
LOOKS_EVERY = 0.03  # seconds between two looks at the tree


class ScriptRuns(Runs):
    """Runs scripts. What Runs calls a net is a script's path below `scripts`; what Runs calls the scale is its further
    arguments.

    The script itself has its steps, and the environment has the threads. In `told` of a run, `said` is stdout and
    `parts` has the SHA-256 of each value in the saved state. `peak` is not below the tree's, as far as looks saw it.
    """

    def __init__(self, bin_dir: str, folder: str, only: str = "", threads: int = 2):
        super().__init__(bin_dir, sys.executable, folder, only)
        self.state, self.threads = self.folder / "state.pt", threads

    def scripts(self, kind: str) -> list[str]:
        """kind: a folder of `scripts`."""
        names = sorted(f"{kind}/{file.stem}" for file in (SCRIPTS / kind).glob("*.py"))
        return [name for name in names if not self.only or self.only in name.split("/")]

    def under(self, budget: int, net: str, scale: str = "", steps: int = 0, threads: int = 2,
              environment: dict | None = None, options: tuple[str, ...] = ()) -> Run:
        quiet = ("--quiet",) if budget > MIB else ()  # the run with 1 MiB is made for the text of its refusal
        return super().under(budget, net, scale, steps, threads, environment, (*quiet, *options))

    def _words(self, net: str, scale: str, steps: int, threads: int) -> list[str]:
        return [str(SCRIPTS / f"{net}.py"), "--out", str(self.state), *shlex.split(scale)]

    def _run(self, command: list[str], environment: dict, report: pathlib.Path | None) -> Run:
        self.state.unlink(missing_ok=True)
        with Tree() as tree:
            run = super()._run(command, {"OMP_NUM_THREADS": str(self.threads), **environment}, report)
        # A script that failed may leave half a file.
        parts = dict(digests(torch.load(self.state, weights_only=True))) if run.code == 0 and self.state.exists() else {}
        said = (self.folder / "stdout").read_bytes()
        told = {"losses": [], "said": said, "parts": parts, "sha256": hashlib.sha256(repr(parts).encode()).hexdigest()}
        return dataclasses.replace(run, told=told, peak=max(run.peak, tree.peak))


class Tree:
    """While entered, looks at the resident bytes (Pss) of this process's descendants together, without `ullage` itself.

    What comes and goes between two looks is missed. wait4 tells the peak of the largest process exactly.
    """

    def __init__(self):
        self.peak, self.most = 0, 0  # bytes; processes
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Tree":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(LOOKS_EVERY):
            resident = [_pss(pid) for pid in _descendants(os.getpid())]
            self.peak = max(self.peak, sum(resident))
            self.most = max(self.most, len(resident))


def _descendants(pid: int) -> list[int]:
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                own = pathlib.Path(f"/proc/{child}/comm").read_text().strip() != "ullage"
                found += [child] * (own and not _same_memory(child, pid)) + _descendants(child)
    except OSError:
        pass  # the process ended meanwhile
    return found


def _same_memory(child: int, parent: int) -> bool:
    """Returns whether the child is between vfork and exec: its bytes are then its parent's, not more."""
    return len({pathlib.Path(f"/proc/{pid}/statm").read_text() for pid in (child, parent)}) == 1


def _pss(pid: int) -> int:
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)[1]) * 1024
    except (OSError, TypeError):
        return 0


def digests(value, name: str = "") -> collections.abc.Iterator[tuple[str, str]]:
    """Yields name and SHA-256 of every value in nested containers: of a tensor's bytes, of any other value's text."""
    if isinstance(value, torch.Tensor):
        raw = value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        yield name, hashlib.sha256(repr((value.dtype, value.shape)).encode() + raw).hexdigest()
    elif isinstance(value, collections.abc.Mapping):
        for key, inner in value.items():
            yield from digests(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from digests(inner, f"{name}[{index}]")
    else:
        yield name, hashlib.sha256(repr(value).encode()).hexdigest()


def as_plain(run: Run, plain: Run) -> list[str]:
    """Returns the problems of a run that must look like the plain one: exit code, stdout, stderr, saved state."""
    code = plain.code if plain.code >= 0 else 128 - plain.code  # a signal's number becomes 128 + n, as in shells
    problems = [] if run.code == code else [f"exit code {run.code}, not {code}: {run.first_words()}"]
    if run.said != plain.said:
        problems.append("stderr: " + first_difference(run.said, plain.said))
    found = differences(run, plain)
    if "said differ" in found:
        found[found.index("said differ")] = "stdout: " + first_difference(*(r.told["said"].decode() for r in (run, plain)))
    if set(run.told["parts"]) != set(plain.told["parts"]) and not found:
        found.append("more was saved")
    return problems + (found[:4] + [f"and {len(found) - 4} more"] if len(found) > 4 else found)


def first_difference(text: str, plain: str) -> str:
    lines, wanted = text.splitlines(keepends=True), plain.splitlines(keepends=True)
    at = next((i for i, pair in enumerate(zip(lines, wanted)) if pair[0] != pair[1]), min(len(lines), len(wanted)))
    got, want = (repr(part[at][:160]) if at < len(part) else "the end" for part in (lines, wanted))
    return f"line {at + 1} is {got}, not {want}"


__all__ = ["ScriptRuns", "as_plain", "kept_its_budget"]
