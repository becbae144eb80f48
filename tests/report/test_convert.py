# SPDX-License-Identifier: Apache-2.0
"""Checks the files that Ullage writes for other viewers, by the viewers' own means: Python's pickle, torch's
_memory_viz where a torch is installed, and the rules of Chrome's trace event format.

usage: test_convert.py CONVERT_FILE WRITE_TRACE FOLDER...    folders with snapshots and profiler traces
"""

import collections
import gzip
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

try:
    import torch.cuda._memory_viz as memory_viz
except ImportError:
    memory_viz = None

EVENT_KEYS = {"action", "addr", "device_free", "size", "stream", "time_us", "frames"}
SEGMENT_KEYS = ("device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
                "segment_type", "segment_pool_id", "is_expandable", "frames")
BLOCK_KEYS = ("address", "size", "requested_size", "state", "frames")
SETTINGS_KEYS = ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold", "expandable_segments",
                 "roundup_power2_divisions")


def frames(record):
    # The reader shortens names of a kilobyte and more.
    return [(f["filename"][:1000], f["line"], f["name"][:1000]) for f in record.get("frames", [])]


def event(record):
    # Some versions write only the size in a snapshot's event.
    result = {key: record[key] for key in EVENT_KEYS & record.keys()}
    result["frames"] = frames(record)
    return result


def segments(snapshot):
    result = []
    for segment in snapshot["segments"]:
        row = {key: segment[key] for key in SEGMENT_KEYS}
        row["segment_pool_id"] = tuple(segment["segment_pool_id"])
        row["frames"] = frames(segment)
        row["blocks"] = [{**{key: block[key] for key in BLOCK_KEYS}, "frames": frames(block)} for block in segment["blocks"]]
        result.append(row)
    return sorted(result, key=lambda row: (row["device"], row["address"]))


def has_every_key(snapshot):
    """Returns whether all keys are there, as in layouts B to D. Of an older snapshot (a list, shape A) only what torch
    reads of the result is looked at."""
    return (isinstance(snapshot, dict) and all("address" in b for s in snapshot["segments"] for b in s["blocks"])
            and all(key in s for s in snapshot["segments"] for key in SEGMENT_KEYS))


def adds_up(snapshot):
    """Returns whether the blocks of each segment add up. Torch refuses to summarise a snapshot in which they do not."""
    return all(sum(b["size"] for b in s["blocks"]) == s["total_size"] for s in snapshot["segments"])


def without_empty_ends(traces):
    traces = [[event(record) for record in trace] for trace in traces]
    while traces and not traces[-1]:
        traces.pop()
    return traces


def check_memory_viz(source, written):
    """Returns true if the file has all keys and the written one was compared with it."""
    after = pickle.load(open(written, "rb"))
    if source.suffix == ".ullage":
        check_converted_trace(source, after)
        return False
    before = pickle.load((gzip.open if source.suffix == ".gz" else open)(source, "rb"))
    if has_every_key(before):
        assert segments(after) == segments(before), f"{source}: segments differ"
        assert without_empty_ends(after["device_traces"]) == without_empty_ends(before["device_traces"]), f"{source}: events"
        if "allocator_settings" in before:
            for key in SETTINGS_KEYS:
                assert after["allocator_settings"][key] == before["allocator_settings"][key], f"{source}: {key}"
        assert after["external_annotations"] == before.get("external_annotations", []), f"{source}: annotations"
    if memory_viz:
        for device in range(len(after["device_traces"])):
            assert "<html" in memory_viz.trace_plot(after, device=device)
            assert "<html" in memory_viz.segment_plot(after, device=device)
        summary = memory_viz.segsum(after) if adds_up(after) else ""
        listing = memory_viz.trace(after)
        if has_every_key(before):
            assert not adds_up(before) or summary == memory_viz.segsum(before), f"{source}: segsum differs"
            assert listing == memory_viz.trace(before), f"{source}: trace differs"
    return has_every_key(before)


def check_converted_trace(source, after):
    """Checks a converted trace. A trace has no allocator, so the file must be a snapshot that viewers can show."""
    assert adds_up(after), source
    for device, events in enumerate(after["device_traces"]):
        live = {}
        for e in events:
            assert (EVENT_KEYS - {"device_free", "addr"}) <= e.keys(), e
            if e["action"] == "alloc":
                assert e["addr"] not in live and e["frames"], e
                live[e["addr"]] = e["size"]
            elif e["action"] == "free_completed":
                assert live.pop(e["addr"], e["size"]) == e["size"], e
        at_end = {b["address"]: b["requested_size"] for s in after["segments"] if s["device"] == device for b in s["blocks"]
                  if b["state"] == "active_allocated"}
        assert live.items() <= at_end.items(), f"{source}: the blocks are not what the events leave"
        if memory_viz:
            assert "<html" in memory_viz.trace_plot(after, device=device)
            assert "<html" in memory_viz.segment_plot(after, device=device)
    if memory_viz:
        memory_viz.segsum(after), memory_viz.trace(after)


def check_perfetto(source, written):
    trace = json.load(open(written), parse_constant=lambda word: sys.exit(f"{source}: {word} in JSON"))
    rows = collections.defaultdict(list)
    peak = collections.Counter()
    last = {}
    for e in trace["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts"} <= e.keys(), f"{source}: {e}"
        assert isinstance(e["name"], str) and isinstance(e["pid"], int) and isinstance(e["tid"], int), e
        assert isinstance(e["ts"], int) and e["ts"] >= 0, e
        if e["ph"] == "X":
            assert isinstance(e["dur"], int) and e["dur"] >= 0 and isinstance(e["args"], dict), e
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] == "C":
            assert list(e["args"]) == ["bytes"] and e["args"]["bytes"] >= 0, e
            key = e["pid"], e["name"]
            assert e["ts"] >= last.get(key, 0), f"{source}: counter goes back in time"
            last[key] = e["ts"]
            peak[key] = max(peak[key], e["args"]["bytes"])
        else:
            assert e["ph"] in ("M", "i"), e
    threads = {(e["pid"], e["tid"]) for e in trace["traceEvents"]
               if e["name"] == "thread_name" and e["args"]["name"].startswith("ops of thread")}
    for row, slices in rows.items():
        if row in threads:  # ops are nested
            continue
        slices.sort()
        for (_, end), (begin, _) in zip(slices, slices[1:]):
            assert begin >= end, f"{source}: slices of row {row} overlap"
    return peak


def check(program, source, folder):
    viz, perfetto = folder / "viz.pickle", folder / "perfetto.json"
    viz.unlink(missing_ok=True)
    done = subprocess.run([program, source, viz, perfetto], capture_output=True, text=True)
    assert done.returncode == 0, f"{source}: {done.stderr}"
    equal = viz.exists() and check_memory_viz(source, viz)
    peak = check_perfetto(source, perfetto)
    best = max((value for (_, name), value in peak.items() if name == "live bytes"), default=0)
    print(f"{source.name}: {perfetto.stat().st_size} bytes for Perfetto, peak {best} bytes live{', pickle equal' * equal}")
    return equal


def main():
    warnings.simplefilter("ignore")  # a device's number is deprecated in newer versions and needed in older ones
    program, write_trace, *folders = sys.argv[1:]
    folders = [pathlib.Path(folder) for folder in folders]
    files = [f for folder in folders if folder.is_dir() for f in sorted(folder.iterdir())
             if f.suffix in (".pickle", ".pkl", ".gz") or f.name.endswith(".json")]
    print(f"torch's _memory_viz: {'used' if memory_viz else 'not there'}")
    for folder in folders:
        if not folder.is_dir():
            print(f"not there: {folder}")
    assert files, "no file to convert"
    with tempfile.TemporaryDirectory() as folder:
        equal = sum(check(program, file, pathlib.Path(folder)) for file in files)
        for kind in ("small", "three", "failed"):
            file = pathlib.Path(folder) / f"{kind}.ullage"
            subprocess.run([write_trace, kind, file], check=True)
            check(program, file, pathlib.Path(folder))
    print(f"{len(files)} files, {equal} equal to the written memory_viz pickle key for key")


main()
