# SPDX-License-Identifier: Apache-2.0
"""Makes a large memory snapshot out of a real one, by repeating its program.

After each run all tensors and segments that it left alive are freed, as a new process would find the device. The last
run keeps its end, so that segments and events agree. As in torch's own files, every event is a new dict and every stack
a new list, but frames are shared. So nearly all of the file is references to frames. The history must begin with the
first segment of its process.

usage: make_big_snapshot.py OUT [--from SNAPSHOT[.gz]] [--megabytes N]      100 MB of
    tests/data/snapshots/niuhuangxiaozi_forward
"""
import argparse
import copy
import gzip
import pathlib
import pickle
import sys

MB = 1_000_000
FORWARD = pathlib.Path(__file__).resolve().parent.parent / "tests/data/snapshots/niuhuangxiaozi_forward.pickle.gz"


def leftovers(events: list) -> list:
    """Returns the events that free what `events` leave alive."""
    tensors, segments = {}, {}
    for event in events:
        kind, address = event["action"], event.get("addr")
        if kind == "alloc":
            tensors[address] = event
        elif kind == "free_completed":
            tensors.pop(address, None)
        elif kind in ("segment_alloc", "segment_map"):
            segments[address] = event
        elif kind in ("segment_free", "segment_unmap"):
            segments.pop(address, None)
    ends = {"segment_alloc": "segment_free", "segment_map": "segment_unmap"}
    return [e | {"action": action} for e in tensors.values() for action in ("free_requested", "free_completed")] + \
           [e | {"action": ends[e["action"]]} for e in segments.values()]


def run_again(events: list, later_us: int) -> list:
    """Copies the events: new dicts and lists, shared as they were within one run. The frames stay the same objects."""
    lists = {}
    again = []
    for event in events:
        event = dict(event)
        if event.get("frames"):
            event["frames"] = lists.setdefault(id(event["frames"]), list(event["frames"]))
        if "time_us" in event:
            event["time_us"] += later_us
        again.append(event)
    return again


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=FORWARD)
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    source, wanted = options.source, options.megabytes * MB
    content = source.read_bytes()
    content = gzip.decompress(content) if source.suffix == ".gz" else content
    snapshot = pickle.loads(content)
    events = next(trace for trace in snapshot["device_traces"] if trace)
    device = snapshot["device_traces"].index(events)
    if events[0]["action"] not in ("segment_alloc", "segment_map"):
        sys.exit(f"{source}: its history does not begin with the process: the first event is {events[0]['action']}")
    between = leftovers(events)
    last = events[-1].get("time_us", 0)
    between = [e | ({"time_us": last} if "time_us" in e else {}) for e in between]
    span = last - events[0].get("time_us", 0) + 1
    runs = max(1, round(wanted / len(content)))
    while True:
        trace = []
        for run in range(runs):
            trace += run_again(events + (between if run + 1 < runs else []), run * span)
        made = copy.copy(snapshot)
        made["device_traces"] = [trace if d == device else t for d, t in enumerate(snapshot["device_traces"])]
        made["external_annotations"] = [a | {"time_us": a["time_us"] + (runs - 1) * span}
                                        for a in snapshot.get("external_annotations", [])]
        written = pickle.dumps(made, protocol=4)
        if len(written) >= wanted * 0.98:
            break
        runs = runs * wanted // len(written) + 1
    options.out.write_bytes(written)
    print(f"{options.out}: {len(written) / MB:.1f} MB, {len(trace)} events, {runs} runs of {source.name}")


if __name__ == "__main__":
    main()
