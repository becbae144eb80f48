#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the segments, blocks and events of device 0 in a snapshot as plain lines: from_snapshot.py FILE > TEXT.

Reads with Python's own pickle, so that the tests compare with something that did not pass through Ullage's reader. Use it
only on files that you trust."""
import pickle
import sys


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    print("layout", "D" if "external_annotations" in snapshot else "B")
    for segment in sorted(snapshot["segments"], key=lambda segment: segment["address"]):
        print("segment", segment["address"], segment["total_size"], segment["stream"], segment["segment_type"])
        at = segment["address"]
        for block in segment["blocks"]:
            state = "free" if block["state"] == "inactive" else "live"
            print("block", at, block["size"], block.get("requested_size", 0), state)
            at += block["size"]
    for event in snapshot["device_traces"][0]:
        print("event", event["action"], event["addr"], event["size"], event["stream"])


if __name__ == "__main__":
    main()
