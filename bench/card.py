# SPDX-License-Identifier: Apache-2.0
"""Trains on a card under budgets, beside the plain program: what nvidia-smi shows, whether the bits are equal, what it
costs.

`bits`: every net at small sizes, at 60 and 40 % of its activations; one with everything moved out before each op; 1,000
steps of a small one. `speed`: DCGAN at 256 x 256, ResNet-50 and a GPT, in turn, round after round. Seconds a step are
medians behind a warm-up, and ratios are those within a round. A run that its budget cannot serve is shown as refused,
and runs again in the bytes that it named. Tables are Markdown, on stdout; each run is reported on stderr as it ends.

Exits with 1 where a bit was wrong, a budget was passed, or a run failed that was not refused.

usage: card.py BIN_DIR PYTHON [bits|speed]... [--device cuda[:N]|cpu] [--quick] [--rounds N] [--seconds N]
               [--host-memory SIZE] [--json FILE]
PYTHON: one that has torch. The one that runs this needs nvidia-ml-py, but for --device cpu, which tries this out.
"""
import argparse
import dataclasses
import json
import pathlib
import re
import signal
import sys
import tempfile
import time

from card_cases import cases
from card_rows import Row, Subject
from card_runs import Runs
from card_shown import Card
from card_table import remarks, table

PARTS = ("bits", "speed")


def say(line: str) -> None:
    print(f"card: {line}", file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("usage: ")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", help="where ullage is")
    parser.add_argument("python", help="one that has torch")
    parser.add_argument("parts", nargs="*", metavar="|".join(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, one round, no 1,000 steps")
    parser.add_argument("--rounds", type=int, help="of speed, at most")
    parser.add_argument("--seconds", type=float, default=3600, help="in all; what is not done by then is left out")
    parser.add_argument("--host-memory", default="48GiB", help="for what leaves the card")
    parser.add_argument("--json", type=pathlib.Path, help="all that every run told")
    options = parser.parse_args()
    if not re.fullmatch(r"cpu|cuda(:\d+)?", options.device):
        parser.error(f"'{options.device}' is no device: cuda, cuda:N, cpu")
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"no part '{part}': {', '.join(PARTS)}")
    options.parts = options.parts or PARTS
    options.rounds = options.rounds or (1 if options.quick or options.device == "cpu" else 3)
    return options


def card_of(device: str) -> Card | None:
    if device == "cpu":
        return None
    try:
        return Card(int(device.partition(":")[2] or 0))
    except ImportError:
        sys.exit(f"card.py: {sys.executable} has no nvidia-ml-py to ask what is shown: pip install nvidia-ml-py")
    except Exception as error:  # an error of NVML's own type
        sys.exit(f"card.py: NVML does not show {device}: {error}")


def kept(row: Row) -> dict:
    return {"case": row.case.title, "options": row.case.options, "words": row.words, "budget": row.budget,
            "bits": row.bits, "ratios": row.ratios, "problems": row.problems(),
            "runs": [dataclasses.asdict(run) for run in row.runs]}


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    until = time.monotonic() + options.seconds
    card = card_of(options.device)
    print(card.words() if card else "the CPU, by resident bytes", time.strftime("%Y-%m-%d"), sep="; ", flush=True)
    told, bad, interrupted = {}, 0, False
    for part in options.parts:
        if interrupted:
            break
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(options.bin_dir, options.python, folder, options.device, card, options.host_memory)
            subjects = [Subject(case, runs, until, say) for case in cases(part, options.device, options.quick)]
            try:
                for number in range(options.rounds if part == "speed" else 1):
                    for subject in subjects:
                        subject.round(number)
            except KeyboardInterrupt:
                say("interrupted; here is what was done")
                interrupted = True
        rows = [row for subject in subjects for row in subject.rows]
        print("\n".join(["", *table(part, rows), *remarks(rows)]), flush=True)
        told[part] = [kept(row) for row in rows]
        bad += sum(bool(row.problems()) for row in rows)
        if options.json:
            options.json.write_text(json.dumps(told, indent=1))
    return 1 if bad or interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
