#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which: the rules of src/ullage/layers.txt, and that only four folders include torch.

Prints every include that breaks a rule as file:line. Then prints the counts, and exits with 1 if a rule was broken.
usage: check_layers.py [ROOT]
"""
import collections
import fnmatch
import pathlib
import re
import sys

WALLS = "src/ullage/layers.txt"
# Folders that may include torch, and the workloads that may not.
SEES_TORCH = {"runtime", "train", "workloads", "python"}
TORCH_FREE_WORKLOADS = {"image", "program"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/|^cuda")
SOURCES = {".h", ".cpp", ".cc", ".hpp", ".cu", ".cuh"}


class Layer:
    def __init__(self, line: int, arrows: list[str]):
        self.line, self.arrows = line, arrows
        self.rooms: dict[str, list[str]] = {}
        self.public: set[str] = set()
        self.below: set[str] = set()
        self.only: dict[str, list[str]] = {}


class Walls:
    def __init__(self):
        self.layers: dict[str, Layer] = {}
        self.inside: dict[str, set[str]] = collections.defaultdict(set)  # folder of tests: layers it may look into
        self.problems: list[str] = []


def behind(arrows: dict[str, list[str]], start: str) -> set[str]:
    """Returns what `start` may include: itself, what its arrows point to, and all that those may include."""
    seen, todo = set(), [start]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += arrows.get(one, [])
    return seen


def read_walls(path: pathlib.Path) -> Walls:
    walls, layer = Walls(), None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        head, _, tail = line.partition("#")[0].partition(":")
        words, names = head.split(), tail.split()
        if not words:
            continue
        if words[0] == "layer" and len(words) == 2:
            layer = walls.layers[words[1]] = Layer(number, names)
        elif words[0] == "inside" and len(words) == 2:
            walls.inside[words[1]] |= set(names)
        elif words[0] == "room" and len(words) == 2 and layer:
            layer.rooms[words[1]] = names
        elif words[0] == "only" and len(words) == 2 and layer and words[1] in layer.rooms:
            layer.only[words[1]] = names
        elif words[0] == "public" and layer:
            layer.public |= set(words[1:])
        elif words[0] == "below" and layer:
            layer.below |= set(words[1:])
        else:
            walls.problems.append(f"{WALLS}:{number}: not understood: {line.strip()}")
    for name, layer in walls.layers.items():
        walls.problems += problems_of_arrows("layer", {n: each.arrows for n, each in walls.layers.items()}, name, layer.line)
        for room in layer.rooms:
            walls.problems += problems_of_arrows("room", layer.rooms, room, layer.line)
    return walls


def problems_of_arrows(kind: str, arrows: dict[str, list[str]], name: str, line: int) -> list[str]:
    found = [f"{WALLS}:{line}: {kind} {name} may include {other}, which is no {kind}"
             for other in arrows[name] if other not in arrows]
    if any(name in behind(arrows, other) for other in arrows[name]):
        found.append(f"{WALLS}:{line}: {kind} {name} may include itself in a circle")
    return found


class House:
    def __init__(self, root: pathlib.Path, walls: Walls):
        self.root, self.walls = root, walls
        self.files = sorted(path.relative_to(root) for top in ("src", "workloads", "python", "tests", "bench")
                            for path in (root / top).rglob("*") if path.suffix in SOURCES)
        self.layer_arrows = {name: layer.arrows for name, layer in walls.layers.items()}

    def includes(self, path: pathlib.PurePath):
        text = (self.root / path).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if match := INCLUDE.match(line):
                yield f"{path}:{number}", *match.groups()

    def is_inside(self, path: pathlib.PurePath, other: str) -> bool:
        """Returns whether this file may include every header of that layer: files of the layer and its tests may."""
        if layer_of(path) is not None:
            return layer_of(path) == other
        folders = (path.parts[0], "/".join(path.parts[:2]))
        return path.parts[1] == other or any(other in self.walls.inside.get(folder, ()) for folder in folders)

    def included_from_outside(self) -> dict[str, set[str]]:
        used = collections.defaultdict(set)
        for path in self.files:
            for _, _, name in self.includes(path):
                if name.startswith("ullage/") and name.count("/") > 1:
                    _, other, header = name.split("/", 2)
                    if not self.is_inside(path, other):
                        used[other].add(header)
        return used

    def problems(self) -> list[str]:
        found = list(self.walls.problems)
        for path in self.files:
            layer = layer_of(path)
            if layer is not None and layer not in self.walls.layers:
                found.append(f"{path}:1: folder '{layer}' is no layer; add it to {WALLS} and src/ullage/README.md")
                continue
            room = self.room_of(path)
            if room and room not in self.walls.layers[layer].rooms:
                found.append(f"{path}:1: folder '{layer}/{room}' is no room; add it to {WALLS}")
                continue
            included = list(self.includes(path))
            for where, bracket, name in included:
                found += [f"{where}: {why}" for why in self.against(path, layer, bracket, name)]
            own = path.with_suffix(".h")
            if path.suffix == ".cpp" and own in self.files and included and not str(own).endswith(included[0][2]):
                found.append(f"{included[0][0]}: a source includes its own header first ({own.name}): so it is seen to stand alone")
        return found + self.lists_that_lie()

    # Yields the reasons why this file may not include that.
    def against(self, path: pathlib.PurePath, layer: str | None, bracket: str, name: str):
        workload = path.parts[1] if layer == "workloads" else None
        if name.startswith("ullage/"):
            _, other, header = name.split("/", 2)
            if layer is not None and other not in behind(self.layer_arrows, layer):
                yield f"{layer} may not include {other} ({name})"
            elif not self.is_inside(path, other):
                if other in self.walls.layers and header not in self.walls.layers[other].public:
                    yield f"{header} is not public in {other} ({WALLS} lists what is)"
            elif layer is not None:
                yield from self.against_rooms(path, layer, header)
        elif layer is None:
            return
        elif TORCH.search(name) and (layer not in SEES_TORCH or workload in TORCH_FREE_WORKLOADS):
            yield f"{workload or layer} may not see torch ({name})"
        elif bracket == '"' and layer != "workloads":
            yield f'write "ullage/<folder>/<file>.h", not "{name}"'
        elif bracket == '"' and workload in TORCH_FREE_WORKLOADS and not name.startswith(f"{workload}/"):
            yield f"{workload} stands alone, it may not include {name}"

    def against_rooms(self, path: pathlib.PurePath, layer: str, header: str):
        walls, room = self.walls.layers[layer], self.room_of(path)
        other = header.split("/")[0] if "/" in header else ""
        if room and other:
            if other not in behind(walls.rooms, room):
                yield f"{layer}/{room} may not include {layer}/{other} ({header})"
        elif room:
            if not is_below(walls, header):
                yield f"{layer}/{room} may not include what is at the top of {layer} ({header})"
        elif other in walls.only and not any(fnmatch.fnmatch(path.stem, name) for name in walls.only[other]):
            yield f"{path.name} may not include {layer}/{other} ({header})"
        elif is_below(walls, path.name) and (other or not is_below(walls, header)):
            yield f"{path.name} is below the rooms of {layer}, it may not include {header}"

    # Returns the folders between the layer and the file; "" at the layer's top.
    def room_of(self, path: pathlib.PurePath) -> str:
        if path.parts[0] != "src" or len(path.parts) <= 4:
            return ""
        return "/".join(path.parts[3:-1])

    def lists_that_lie(self) -> list[str]:
        found, used = [], self.included_from_outside()
        there = {str(path) for path in self.files}
        for name, layer in self.walls.layers.items():
            line = f"{WALLS}:{layer.line}"
            for header in sorted(layer.public - used[name]):
                found.append(f"{line}: {header} need not be public in {name}: nothing outside includes it")
            for header in sorted(layer.public & used[name]):
                if f"src/ullage/{name}/{header}" not in there:
                    found.append(f"{line}: {header} is public in {name} and does not exist")
            for room in layer.rooms:
                if not any(path.startswith(f"src/ullage/{name}/{room}/") for path in there):
                    found.append(f"{line}: room {room} of {name} has no file")
        return found


def is_below(layer: Layer, name: str) -> bool:
    return "*" in layer.below or name in layer.below


def layer_of(path: pathlib.PurePath) -> str | None:
    """Returns the layer of a file: the folder below src/ullage, or workloads, or python. None for tests and
    benchmarks."""
    if path.parts[:2] == ("src", "ullage") and len(path.parts) > 3:
        return path.parts[2]
    return path.parts[0] if path.parts[0] in ("workloads", "python") else None


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    if not (root / WALLS).is_file():
        print(f"{root}: no {WALLS}")
        return 1
    house = House(root, read_walls(root / WALLS))
    if not house.files:
        print(f"{root}: no sources found")
        return 1
    problems = house.problems()
    for problem in problems:
        print(problem)
    print(f"{len(house.files)} files, {len(problems)} things against the layers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
