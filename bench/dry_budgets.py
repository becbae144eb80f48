# SPDX-License-Identifier: Apache-2.0
"""Runs a CUDA program on a dry card: plain, at shares of its peak, at the least budget that a run named, and 5 % below.

Prints a row of Markdown for each run. Nothing is said of bits or of times, because a dry card has neither.

usage: dry_budgets.py ULLAGE [--name NAME] [--card CARD] [--shares 100,75,60,40] [--limit SECONDS] [--logs FOLDER]
                      [--head] -- COMMAND
  --head   print the head of the table first
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
COLUMNS = ["program", "budget, MiB", "ends", "card's peak", "over", "findings", "unread", "steps planned, left",
           "planned / seen peak", "out, back", "locked", "least"]


def run(options, words: str, extra: list[str]) -> tuple[dict | None, int]:
    folder = pathlib.Path(options.logs)
    report = folder / f"{options.name}.{words}.json"
    report.unlink(missing_ok=True)
    with open(report.with_suffix(".log"), "wb") as log:
        try:
            code = subprocess.run([options.ullage, "run", "--dry", "--device", options.card, *extra, "--report", report,
                                   "--", *options.command], stdout=log, stderr=subprocess.STDOUT,
                                  timeout=options.limit).returncode
        except subprocess.TimeoutExpired:
            code = 124
    return (json.loads(report.read_text()) if report.exists() else None), code


def mib(count) -> str:
    return "-" if count is None else f"{count / MIB:,.0f}"


def planned(told: dict) -> tuple[str, str]:
    plan = told["plan"]
    if plan is None:
        return f"none of {told['steps']}", "-"
    differ = "" if plan["peak_seen_bytes"] in (plan["peak_bytes"], None) else " DIFFER"
    return f"{plan['steps']} of {told['steps']}, {plan['deviations']}", f"{plan['peak_bytes']} / {plan['peak_seen_bytes']}{differ}"


def row(name: str, budget: int, told: dict | None, code: int) -> list[str]:
    if told is None:
        return [name, mib(budget), f"no report, code {code}", *["-"] * (len(COLUMNS) - 3)]
    dry = told["dry"]
    ends = "as plain" if code == 0 else told["outcome"] if code else "?"
    over = max(told["over_budget_bytes"] or 0, dry["peak_bytes"] - told["budget_bytes"], 0)
    steps, peaks = planned(told)
    return [name, mib(budget), ends, mib(dry["peak_bytes"]), str(over), str(dry["findings"]),
            f"{dry['unread_launches']} of {dry['launches']}", steps, peaks,
            f"{mib(told['spilled_bytes'])}, {mib(told['restored_bytes'])}", mib(dry["pinned_peak_bytes"]),
            mib(told["least_budget_bytes"])]


def show(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ullage")
    parser.add_argument("--name", default="program")
    parser.add_argument("--card", default="cuda:24GiB")
    parser.add_argument("--shares", default="100,75,60,40")
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--logs", default=tempfile.gettempdir())
    parser.add_argument("--head", action="store_true")
    if "--" not in sys.argv:
        parser.error("write -- before the command")
    at = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:at])
    options.command = sys.argv[at + 1:]
    if options.head:
        show(COLUMNS)
        show(["---"] * len(COLUMNS))
    plain, code = run(options, "plain", [])
    if plain is None or code != 0:
        print(f"{options.name}: the plain program ended with code {code}", file=sys.stderr)
        return 1
    peak = plain["cards"][0]["peak_bytes"]
    show([options.name, "plain", f"{plain['steps']} steps", mib(peak), *["-"] * (len(COLUMNS) - 4)])
    least = None
    for share in map(int, options.shares.split(",")):
        budget = peak * share // 100
        told, code = run(options, str(share), ["--memory", str(budget)])
        show(row(f"{options.name}, {share} %", budget, told, code))
        least = (told or {}).get("least_budget_bytes") or least
    if least:
        for words, budget in (("least", least), ("below", least * 95 // 100)):
            told, code = run(options, words, ["--memory", str(budget)])
            show(row(f"{options.name}, {words}", budget, told, code))
    return 0


if __name__ == "__main__":
    sys.exit(main())
