# SPDX-License-Identifier: Apache-2.0
"""Calls one function with sizes, for ullage.predict(): _rehearse.py MODULE|FILE NAME KNOB=N..."""
import importlib
import os
import runpy
import sys


def main() -> None:
    where, name, *knobs = sys.argv[1:]
    sys.path.pop(0)  # this file's folder
    sizes = {knob: int(size) for knob, _, size in (text.partition("=") for text in knobs)}
    if os.path.isabs(where):
        sys.argv = [where]
        function = runpy.run_path(where, run_name="__ullage_rehearsal__")[name]
    else:
        function = getattr(importlib.import_module(where), name)
    function(**sizes)


if __name__ == "__main__":
    main()
