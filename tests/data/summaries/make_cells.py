#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of this folder cell by cell into cells.jsonl. Shares no code with the reader that it checks.

It reads by columns (a row is 77 letters wide, with bars at fixed places); Ullage's reader goes by the bars.
"""
import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent
SCALE = {"B": 1, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20, "GB": 2**30, "GiB": 2**30}
COLUMNS = [(26, 36), (39, 49), (52, 62), (65, 75)]


def main():
    out = []
    for path in sorted(HERE.glob("*.txt")):
        summary = {"device": None, "ooms": None, "retries": None, "rows": []}
        text = path.read_text()
        for line in text.splitlines():
            if len(line) != 77:
                continue
            if title := re.search(r"device ID (\d+)", line):
                summary["device"] = int(title.group(1))
            if "OOMs" in line:
                summary["ooms"], summary["retries"] = map(int, re.findall(r"\d+", line))
            name = line[1:24].strip()
            if not name or name[0] in "=-" or name == "Metric" or not re.search(r"\d", line[26:36]):
                continue
            if line[24] != "|" or line[37] != "|" or line[50] != "|" or line[63] != "|":
                continue
            pool = {"from large pool": "large", "from small pool": "small"}.get(name, "")
            cells, sized = [], False
            for begin, end in COLUMNS:
                number, unit = re.fullmatch(r"\s*(\d+)\s*([KMG]?i?B)?\s*", line[begin:end]).groups()
                scale = SCALE[unit] if unit else 1
                sized |= unit is not None
                cells.append([int(number) * scale, scale])
            if not pool:
                parent = name
            summary["rows"].append({"name": parent, "pool": pool, "counts": not sized, "cells": cells})
        old = "1.4 to 1.13" if re.search(r"[KMG]B ", text) else ""
        summary["torch"] = "2.0 or later" if re.search(r"[KMG]iB ", text) else old
        out.append(json.dumps({"file": path.name, "summary": summary}) + "\n")
    (HERE / "cells.jsonl").write_text("".join(out))
    print(f"{len(out)} tables")


if __name__ == "__main__":
    main()
