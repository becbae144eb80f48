#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns facts.txt, typed by hand, into facts.jsonl: every figure in bytes, rounded up to a whole byte.
Ullage rounds down when it prints, so it then prints what the message said.

Shares no code with the reader that it checks. Stops if a size in a message is neither a figure of its row nor listed
there as "not_a_fact", or if a row has a size that its message does not print.
"""
import collections
import decimal
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
UNIT = {"B": 0, "K": 10, "M": 20, "G": 30, "T": 40}  # GB and GiB alike: PyTorch's GB were binary
SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:(bytes)|([KMGTPE]?)(i?)B)(?![a-zA-Z])")


def in_bytes(size):
    if "x" in size:  # a shape and the width of its type
        factors = [int(part) for part in size.rstrip("B").split("x")]
        product = 1
        for factor in factors:
            product *= factor
        return product
    number, unit = re.fullmatch(r"([\d.]+)([A-Z]?)i?B", size).groups()
    exact = decimal.Decimal(number) * 2 ** UNIT[unit or "B"]
    return int(exact.to_integral_value(decimal.ROUND_CEILING))


def printed(size):
    return re.sub(r"\s|iB$|B$|bytes$", "", size)


def main():
    decimal.getcontext().prec = 60
    messages = [json.loads(line) for line in (HERE / "messages.jsonl").open()]
    text_of = {message["id"]: message["text"] for message in messages}
    facts = []
    for row in (HERE / "facts.txt").read_text().splitlines():
        if not row or row.startswith("#"):
            continue
        name, teller, form, *figures = row.split()
        fact = {"id": name, "teller": teller, "form": form}
        typed = collections.Counter()
        for figure in figures:
            if figure.startswith("not_a_fact:"):
                typed[printed(figure.split(":", 1)[1])] += 1
                continue
            key, value = figure.split("=")
            if key in ("device", "rank"):
                fact[key] = int(value)
                continue
            if "x" not in value:
                typed[printed(value)] += 1
            if key.startswith("pid:"):
                fact.setdefault("processes", []).append([int(key[4:]), in_bytes(value)])
            else:
                fact[key] = in_bytes(value)
        text = text_of[name]
        seen = collections.Counter(printed(match.group(0)) for match in SIZE.finditer(text))
        if name == "oom-143":  # "(109.53/121.69 GiB)": the unit of the first stands after the second
            seen["109.53G"] += 1
        if seen != typed:
            sys.exit(f"{name}: the message prints {sorted(seen.elements())}, the row has {sorted(typed.elements())}")
        facts.append(fact)
    if [fact["id"] for fact in facts] != [message["id"] for message in messages]:
        sys.exit("facts.txt and messages.jsonl differ in their ids or order")
    (HERE / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    print(f"{len(facts)} facts")


if __name__ == "__main__":
    main()
