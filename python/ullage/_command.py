# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the command `ullage`."""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sysconfig

_UNREADABLE = 3  # exit code of `ullage` if a file cannot be read


def command() -> str:
    """Returns the command's path: beside this Python, otherwise on PATH. Raises FileNotFoundError."""
    found = shutil.which("ullage", path=sysconfig.get_path("scripts")) or shutil.which("ullage")
    if found is None:
        raise FileNotFoundError("the command 'ullage' is neither beside this Python nor on PATH; install it, or add its folder to PATH")
    return found


def library(name: str) -> pathlib.Path:
    """Returns the path of a library that is installed with the command. Raises FileNotFoundError."""
    folder = pathlib.Path(command()).resolve().parent.parent / "lib"
    if not (folder / name).exists():
        raise FileNotFoundError(f"{name} is not in {folder}, where it is installed with the command 'ullage'; install it again")
    return folder / name


def answer(verb: str, *options: str, given: str | None = None, **settings: object) -> str:
    """Returns what the command prints on stdout; `given` is its stdin. Raises ValueError if it cannot read its input,
    RuntimeError if it fails otherwise."""
    settings.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run([command(), verb, *options], input=given, stdout=subprocess.PIPE, text=True, **settings)
    said = (done.stderr or "").strip()
    if done.returncode == _UNREADABLE:
        raise ValueError(said)
    if done.returncode != 0:
        raise RuntimeError(f"ullage {verb} ended with exit code {done.returncode}" + (f": {said}" if said else ""))
    return done.stdout
