# SPDX-License-Identifier: Apache-2.0
"""Runs a program and measures it by the operating system's figures."""
import json
import os
import pathlib


def run(command: list[str], extra: dict[str, str], log: pathlib.Path) -> tuple[int, int, str]:
    """Returns the exit code (negative: the signal), peak resident bytes as wait4 and /usr/bin/time report them, and all
    output.

    `extra` is added to the environment; the output goes through the file `log`.
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
    """Returns the run.json that ullage-dcgan wrote into its --out folder."""
    return json.loads((out / "run.json").read_text())
