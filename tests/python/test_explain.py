# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage.explain` of the package: exceptions, files, and inputs that are neither.

usage: test_explain.py BIN, the folder of ullage
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]
import ullage  # noqa: E402
from cases import run_cases  # noqa: E402

WORDS = ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 7.79 GiB of which 1.20 GiB is free. "
         "Including non-PyTorch memory, this process has 6.50 GiB memory in use. Of the allocated memory 5.50 GiB is allocated by "
         "PyTorch, and 600.00 MiB is reserved by PyTorch but unallocated.")


def caught(error: Exception) -> Exception:
    """Returns an error that is raised while `error` is handled, as a training loop's would be."""
    try:
        try:
            raise error
        except Exception as first:
            raise KeyError("of the clean-up") from first
    except Exception as last:
        return last


def command_says(*words: str) -> str:
    return subprocess.run(["ullage", "explain", *words], capture_output=True, text=True, check=True).stdout


def test_an_exception() -> None:
    for error in (RuntimeError(WORDS), caught(RuntimeError(WORDS))):
        told = ullage.explain(error)
        assert told.text.startswith("GPU 0 (7.79 GiB) refused 2.00 GiB") and str(told) == told.text, told.text
        assert told.data["facts"] and "told 2 times" not in told.text, told
        assert told.page.startswith("<!doctype html>") or told.page.startswith("<!DOCTYPE html>"), told.page[:40]
        shown = told._repr_html_()
        assert shown.count('"') == 4 and "&quot;" in shown, shown[:200]  # of the two attributes alone


def test_a_file() -> None:
    file = next((ROOT / "tests/data/snapshots").glob("*.pickle*"))
    told = ullage.explain(file)
    assert told.text == command_says(str(file)) == ullage.explain(str(file)).text, told.text


def test_what_is_none() -> None:
    for wrong, reason in (("absent.log", "no such file"), (ROOT, "a folder"), (__file__ + "/x", ""),
                          (ZeroDivisionError("division by zero"), "no error of lack of memory")):
        try:
            ullage.explain(wrong)
        except ValueError as error:
            assert reason in str(error), error
        else:
            raise AssertionError(f"{wrong} was explained")


def test_no_command() -> None:
    before = os.environ.pop("PATH")
    try:
        ullage.explain(RuntimeError(WORDS))
    except FileNotFoundError as error:
        assert "ullage" in str(error), error
    else:
        raise AssertionError("there was no command")
    finally:
        os.environ["PATH"] = before


def main() -> None:
    os.environ["PATH"] = sys.argv[1] + os.pathsep + os.environ["PATH"]
    run_cases(globals())


if __name__ == "__main__":
    main()
