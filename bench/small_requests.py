# SPDX-License-Identifier: Apache-2.0
"""Where should the border lie between PyTorch's allocator and the pager of a card?

Runs a CUDA program on a dry card, reads the sizes of its requests from torch's memory history, and then runs it under
budgets with one border after another (ULLAGE_CARD_LEAST). Prints two tables of Markdown, in MiB:

  requests   for each border: the share of requests and of bytes below it; at the peak of all bytes, the bytes below it
             and what whole pages of 2 MiB add to those from it on
  runs       for each share of the plain peak and each border: the card's peak, what is outside the pool (the card's
             context included), what is moved out, and the least budget that the run names

usage: small_requests.py ULLAGE [--name NAME] [--card CARD] [--borders 1,2,4,8] [--shares 100,60] [--limit SECONDS]
                         [--logs FOLDER] [--recording PICKLE] -- COMMAND
  --borders    in MiB
  --recording  read this memory history instead of recording one; without a COMMAND nothing is run
"""
import argparse
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

MIB = 1 << 20
PAGE = 2 * MIB


def trace_of(file: pathlib.Path) -> list[dict]:
    """The allocations and frees of the card that has most of them.

    The history of a long run has lost its first events. Then what was live before the first one left comes first: what
    is freed later, or still live at the end, without having been allocated meanwhile.
    """
    with open(file, "rb") as at:
        told = pickle.load(at)
    events = [event for event in max(told["device_traces"], key=len) if event["action"] in ("alloc", "free_completed")]
    known, before = set(), []
    for event in events:
        if event["action"] == "alloc":
            known.add(event["addr"])
        elif event["addr"] in known:
            known.remove(event["addr"])
        else:
            before.append(event)
    for segment in told["segments"]:
        before += [{"addr": block["address"], "size": block["requested_size"]} for block in segment["blocks"]
                   if block["state"] == "active_allocated" and block["address"] not in known]
    if before:
        print(f"the history lacks {len(before)} allocations; they count as its first events", file=sys.stderr)
    return [{**event, "action": "alloc"} for event in before] + events


def in_pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


class Side:
    """The requests on one side of a border."""

    def __init__(self):
        self.requests = self.requested = self.live = self.peak = 0
        self.rounding = 0  # what whole pages would add to what is live
        self.at_peak = self.rounding_at_peak = 0  # when all bytes of the program are at their peak

    def add(self, size: int):
        self.requests += 1
        self.requested += size
        self.live += size
        self.rounding += in_pages(size) - size
        self.peak = max(self.peak, self.live)

    def remove(self, size: int):
        self.live -= size
        self.rounding -= in_pages(size) - size


def sides(events: list[dict], border: int) -> tuple[Side, Side]:
    """Those below the border and those from it on."""
    below, above = Side(), Side()
    peak = 0
    for event in events:
        side = below if event["size"] < border else above
        if event["action"] == "alloc":
            side.add(event["size"])
        else:
            side.remove(event["size"])
        if below.live + above.live > peak:
            peak = below.live + above.live
            for one in (below, above):
                one.at_peak, one.rounding_at_peak = one.live, one.rounding
    return below, above


def show(cells: list) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(cells: list[str]) -> None:
    show(cells)
    show(["---"] * len(cells))


def mib(count) -> str:
    return "-" if count is None else f"{count / MIB:,.0f}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def show_requests(name: str, events: list[dict], borders: list[int]) -> None:
    head(["program", "border", "requests below", "bytes below", "most below at once", "at the peak: below", "from it on",
          "added by whole pages"])
    for border in borders:
        below, above = sides(events, border * MIB)
        show([name, border, percent(below.requests, below.requests + above.requests),
              percent(below.requested, below.requested + above.requested), mib(below.peak),
              f"{mib(below.at_peak)} ({percent(below.at_peak, below.at_peak + above.at_peak)})", mib(above.at_peak),
              f"{mib(above.rounding_at_peak)} ({percent(above.rounding_at_peak, above.at_peak)})"])


def run(options, words: str, extra: list, border: int | None = None) -> tuple[dict | None, int]:
    report = pathlib.Path(options.logs) / f"{options.name}.{words}.json"
    report.unlink(missing_ok=True)
    environment = dict(os.environ)
    if border is not None:
        environment["ULLAGE_CARD_LEAST"] = f"{border}MiB"
    with open(report.with_suffix(".log"), "wb") as log:
        try:
            code = subprocess.run([options.ullage, "run", "--dry", "--device", options.card, *extra, "--report", report,
                                   "--", *options.command], stdout=log, stderr=subprocess.STDOUT, env=environment,
                                  timeout=options.limit).returncode
        except subprocess.TimeoutExpired:
            code = 124
    return (json.loads(report.read_text()) if report.exists() else None), code


def show_runs(options, plain: int) -> None:
    head(["program", "share", "border", "ends", "card's peak", "outside the pool", "moved out", "moved back", "least",
          "over", "findings"])
    for share in options.shares:
        budget = plain * share // 100
        for border in options.borders:
            told, code = run(options, f"{share}.{border}", ["--memory", str(budget)], border)
            if told is None or "dry" not in told:
                show([options.name, f"{share} %", border, f"no report, code {code}", *["-"] * 7])
                continue
            dry = told["dry"]
            show([options.name, f"{share} %", border, "as plain" if code == 0 else told["outcome"], mib(dry["peak_bytes"]),
                  mib(told["outside_pool_bytes"]), mib(told["spilled_bytes"]), mib(told["restored_bytes"]),
                  mib(told["least_budget_bytes"]), max(told["over_budget_bytes"] or 0, dry["peak_bytes"] - budget, 0),
                  dry["findings"]])


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ullage")
    parser.add_argument("--name", default="program")
    parser.add_argument("--card", default="cuda:24GiB")
    parser.add_argument("--borders", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--shares", type=numbers, default=[100, 60])
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--logs", default=tempfile.gettempdir())
    parser.add_argument("--recording", type=pathlib.Path)
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at])
    options.command = sys.argv[at + 1:]
    recording = options.recording or pathlib.Path(options.logs) / f"{options.name}.pickle"
    if options.recording is None and not options.command:
        parser.error("write -- and a command, or --recording FILE")
    plain = None
    if options.command:
        plain, code = run(options, "plain", [] if options.recording else ["--record", str(recording)])
        if plain is None or code != 0:
            print(f"{options.name}: the plain program ended with code {code}", file=sys.stderr)
            return 1
    show_requests(options.name, trace_of(recording), options.borders)
    if plain is not None:
        card = plain["cards"][0]
        print(f"\nPlain: {mib(card['peak_bytes'])} on the card, of these {mib(card['context_bytes'])} context, "
              f"{mib(card['allocated_peak_bytes'])} allocated and {mib(card['reserved_peak_bytes'])} reserved by "
              "PyTorch's allocator at their peaks.\n")
        show_runs(options, card["peak_bytes"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
