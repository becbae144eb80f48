# SPDX-License-Identifier: Apache-2.0
"""One run of a program, judged by the operating system."""
import json
import os
import pathlib


def run(command: list[str], extra: dict[str, str], log: pathlib.Path) -> tuple[int, int, str]:
    """Exit code (negative: the signal), peak resident bytes as wait4 and /usr/bin/time tell it, and all that was printed.

    `extra` is added to the environment; what is printed goes through the file `log`.
    """
    pid = os.fork()
    if pid == 0:
        with open(log, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.execve(command[0], command, {**os.environ, **extra})
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, log.read_text()


def run_json(out: pathlib.Path) -> dict:
    """What ullage-dcgan wrote of a run into its --out folder."""
    return json.loads((out / "run.json").read_text())
