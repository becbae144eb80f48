# SPDX-License-Identifier: Apache-2.0
"""Saves CPU time in tests that start many Python programs with torch. Each start takes 3 s of it, with an optimizer
6 s.

`environment()` is for the programs, under `ullage run` or plain; `FIRST_LINE` for those that some cases start with
torch's own compiler. `plain()` runs a program in a fork of this process,
which imports torch once.
"""
import os
import pathlib
import sys
import tempfile
import traceback

QUICK = str(pathlib.Path(__file__).resolve().parent / "quick")
# The first line of a program that is to start quickly in any environment.
FIRST_LINE = f"import sys; sys.path.insert(0, {QUICK!r}); import quick_optimizers"


def environment(**variables: str) -> dict[str, str]:
    """Returns this process's environment with `variables`, a quick start of optimizers, and threads that do not
    spin."""
    path = os.pathsep.join(filter(None, [QUICK, variables.pop("PYTHONPATH", os.environ.get("PYTHONPATH"))]))
    return {**os.environ, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": path, **variables}


def plain(text: str, folder: str | None = None) -> str:
    """Runs `text` as a program that is started without arguments, in `folder`. Returns its stdout; a failure raises.

    The program gets a new generator and its own threads, because this process has used neither.
    """
    if "torch" not in sys.modules:
        os.environ["OMP_WAIT_POLICY"] = "passive"  # libgomp reads it when torch is loaded
        sys.path.insert(0, QUICK)
        import quick_optimizers  # noqa: F401
        import torch  # noqa: F401
    sys.stdout.flush()
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            _run_in_child(text, out.fileno(), folder)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        said = out.read().decode()
    assert code == 0, f"the plain program failed: {code}: {said}"
    return said


def _run_in_child(text: str, out: int, folder: str | None) -> None:
    code = 1
    try:
        os.dup2(out, 1)
        os.chdir(folder or ".")
        sys.argv = ["-c"]
        exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
