#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which: the arrows of src/ullage/README.md, and that only three folders see torch.

Prints every include that breaks a rule as file:line and exits with 1; prints what was looked at otherwise.
usage: check_layers.py [ROOT]
"""
import pathlib
import re
import sys

# A folder may include itself, these, and all that these may include.
ARROWS = {
    "base": [],
    "trace": ["base"],
    "store": ["trace"],
    "cuda": ["store"],
    "sim": ["store"],
    "plan": ["sim"],
    "predict": ["sim"],
    "diagnose": ["plan", "predict"],
    "report": ["diagnose"],
    "read": ["trace"],
    "runtime": ["plan", "cuda"],
    "preload": ["base"],
    "cli": ["report", "read"],
    "workloads": ["runtime", "read"],
    "python": ["runtime"],
}
# Programs may use the picture library; nobody else may.
SEES_TORCH = {"runtime", "workloads", "python"}
TORCH_FREE_WORKLOADS = {"image", "program"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/|^cuda")
SOURCES = {".h", ".cpp", ".cc", ".hpp", ".cu", ".cuh"}


def allowed(layer: str) -> set[str]:
    seen, todo = set(), [layer]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += ARROWS[one]
    return seen


def layer_of(path: pathlib.PurePath) -> str | None:
    """The layer a file belongs to: the folder below src/ullage, or workloads."""
    parts = path.parts
    if parts[:2] == ("src", "ullage") and len(parts) > 3:
        return parts[2]
    return parts[0] if parts[0] in ("workloads", "python") else None


def problems_of(path: pathlib.Path, relative: pathlib.PurePath) -> list[str]:
    layer = layer_of(relative)
    if layer is None:
        return []
    if layer not in ARROWS:
        return [f"{relative}:1: folder '{layer}' is no layer; add it to tools/check_layers.py and src/ullage/README.md"]
    may = allowed(layer)
    workload = relative.parts[1] if layer == "workloads" else None
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, name = match.groups()
        where = f"{relative}:{number}"
        if name.startswith("ullage/"):
            other = name.split("/")[1]
            if other not in may:
                found.append(f"{where}: {layer} may not include {other} ({name})")
        elif TORCH.search(name) and (layer not in SEES_TORCH or workload in TORCH_FREE_WORKLOADS):
            found.append(f"{where}: {workload or layer} may not see torch ({name})")
        elif bracket == '"' and layer != "workloads":
            found.append(f'{where}: write "ullage/<folder>/<file>.h", not "{name}"')
        elif bracket == '"' and workload in TORCH_FREE_WORKLOADS and not name.startswith(f"{workload}/"):
            found.append(f"{where}: {workload} stands alone, it may not include {name}")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    files = sorted(p for top in ("src", "workloads", "python") for p in (root / top).rglob("*") if p.suffix in SOURCES)
    if not files:
        print(f"{root}: no sources found")
        return 1
    problems = [p for path in files for p in problems_of(path, path.relative_to(root))]
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} includes against the layers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
