# SPDX-License-Identifier: Apache-2.0
"""Compares every number and name that `read` takes out of a snapshot with what Python's own pickle reads, by lines.

The small copies are always compared, and all the real files if they lie beside the checkout. Python's pickle runs
whatever a file asks for. So only these known files are given to it, and no name in them is looked up.

usage: test_against_python.py SNAPSHOT_DUMP
"""
import gzip
import io
import itertools
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATES = {"active_allocated": "active", "active_pending_free": "pending", "active_awaiting_free": "pending", "inactive": "inactive"}


class DataOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        raise pickle.UnpicklingError(f"asks for {module}.{name}")


class Dump:
    """Makes the lines that snapshot_dump.cpp prints from plain Python objects."""

    def __init__(self, snapshot) -> None:
        self.lines, self.numbers, self.snapshot = [], {}, snapshot

    def stack(self, frames) -> int:
        key = tuple((f.get("filename", ""), f.get("line", 0), f.get("name", "")) for f in frames or [])
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.lines.append(f"stack {self.numbers[key]}" + "".join(f" | {file}:{line} {name}" for file, line, name in key))
        return self.numbers[key]

    def segment(self, s: dict) -> None:
        stack, address, blocks = self.stack(s.get("frames")), s["address"], []
        for b in s["blocks"]:
            history = b.get("history") or [{}]
            blocks.append((b.get("address", address), b["size"],
                           b.get("requested_size", history[0].get("real_size", b["size"])), STATES[b["state"]],
                           b.get("frames", history[0].get("frames"))))
            address = blocks[-1][0] + b["size"]
        blocks.sort(key=lambda b: b[0])
        used = [b for b in blocks if b[3] != "inactive"]
        self.lines.append(" ".join(str(x) for x in (
            "segment", s["device"], s["address"], s["total_size"],
            s.get("allocated_size", sum(b[1] for b in used if b[3] == "active")), s.get("active_size", sum(b[1] for b in used)),
            s.get("requested_size", sum(b[2] for b in used)), s.get("stream", 0), s["segment_type"],
            int(s.get("is_expandable", False)), *s.get("segment_pool_id", (0, 0)), stack)))
        for *numbers, frames in blocks:
            stack = self.stack(frames)
            self.lines.append(" ".join(str(x) for x in ("block", *numbers, stack)))

    def event(self, device: int, e: dict) -> None:
        stack = self.stack(e.get("frames"))
        what = [e["size"]] if e["action"] == "snapshot" else [e["addr" if "addr" in e else "device_free"], e["size"], e["stream"]]
        self.lines.append(" ".join(str(x) for x in ("event", device, e["action"], *what, e.get("time_us", "-"), stack)))

    def write(self) -> list[str]:
        whole = {"segments": self.snapshot} if isinstance(self.snapshot, list) else self.snapshot
        segments, traces = whole["segments"], whole.get("device_traces", [])
        for device in range(max([len(traces), *(s["device"] + 1 for s in segments)])):
            for s in sorted((s for s in segments if s["device"] == device), key=lambda s: s["address"]):
                self.segment(s)
            for e in traces[device] if device < len(traces) else []:
                self.event(device, e)
        for a in whole.get("external_annotations", []):
            self.lines.append(f"annotation {a['stage']} {a['name']} {a['device']} {a['time_us']}")
        if "allocator_settings" in whole:
            self.lines.append(f"settings {whole['allocator_settings']['PYTORCH_CUDA_ALLOC_CONF']}")
        return self.lines


def main() -> None:
    dump = sys.argv[1]
    real = ROOT.parent / "shared" / "real" / "snapshots"
    files = sorted(itertools.chain((ROOT / "tests/data/snapshots").glob("*.p*"), real.glob("*.p*") if real.exists() else []))
    if not real.exists():
        print("no folder ../shared/real beside the checkout: only the small copies are compared")
    lines = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            content = file.read_bytes()
            if file.suffix == ".gz":
                content = gzip.decompress(content)
                file = pathlib.Path(folder, file.stem)
                file.write_bytes(content)
            expected = Dump(DataOnly(io.BytesIO(content)).load()).write()
            ours = subprocess.run([dump, str(file)], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
            ours = [line for line in ours[:-1] if not line.startswith("layout ")]
            for number, (mine, theirs) in enumerate(itertools.zip_longest(ours, expected)):
                if mine != theirs:
                    begin = max(0, len(os.path.commonprefix([mine or "", theirs or ""])) - 100)
                    sys.exit(f"{file.name}, line {number}, from character {begin} on:\n"
                             f"  read:   {mine and mine[begin:begin + 300]}\n  python: {theirs and theirs[begin:begin + 300]}")
            lines += len(expected)
    print(f"{len(files)} snapshots, {lines} lines equal")


if __name__ == "__main__":
    main()
