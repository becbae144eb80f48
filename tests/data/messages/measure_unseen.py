# SPDX-License-Identifier: Apache-2.0
"""Measures how often `ullage explain` is right on messages that nobody had when its rules were written (unseen*.jsonl).

usage: measure_unseen.py ULLAGE open|sealed [-v] [FILE]     FILE: a set beside this script, or "all"; else unseen.jsonl

The half of a message follows from its source, before anybody looked: `open` is there to write rules from; `sealed` is run
to know how good they are, and not looked into. -v names the misses, and refuses to for the sealed half.
"""
import collections
import hashlib
import json
import pathlib
import subprocess
import sys

UNTOLD = {"tool_bug", "other"}  # no message can show these, so they do not count as causes
ALARM = 0.3  # a higher confidence on a text without a lack of memory is a false alarm
NO_LACK = {"not_memory", "disk_full", "index_error_in_disguise", "garbage_size", "library_mismatch"}  # these are none


def half_of(case: dict) -> str:
    return "sealed" if int(hashlib.sha256(case["source"].encode()).hexdigest(), 16) % 2 else "open"


def explain(ullage: str, text: str) -> tuple[list[tuple[str, float]], list[dict]]:
    done = subprocess.run([ullage, "explain", "--json", "-"], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        return [], []
    told = json.loads(done.stdout)
    return [(cause["id"], cause["confidence"]) for cause in told["causes"]], told["remedies"]


def main() -> None:
    verbose = "-v" in sys.argv
    ullage, half, *files = [word for word in sys.argv[1:] if word != "-v"]
    if half not in ("open", "sealed") or verbose and half == "sealed" or len(files) > 1:
        raise SystemExit(__doc__)
    name = files[0] if files else "unseen.jsonl"
    sets = sorted(pathlib.Path(__file__).parent.glob("unseen*.jsonl" if name == "all" else name))
    cases = [case for one in sets for case in map(json.loads, one.read_text().splitlines()) if half_of(case) == half]
    count, right, said = collections.Counter(), collections.Counter(), collections.Counter()
    for case in cases:
        causes, remedies = explain(ullage, case["text"])
        ids, misses = [name for name, _ in causes], []
        if "not_memory" in case["accepted"]:
            count["no lack"] += 1
            count["no alarm"] += not any(share > ALARM and name not in {*NO_LACK, *case["accepted"]} for name, share in causes)
        elif known := [name for name in case["accepted"] if name not in UNTOLD]:
            count["cause"] += 1
            count["told"] += bool(causes)
            count["first"] += ids[:1] != [] and ids[0] in known
            count["three"] += bool(set(ids[:3]) & set(known))
            count["bold and wrong"] += any(share > 0.5 and name not in known for name, share in causes)
            for name, share in causes:
                said[int(share * 10)] += 1
                right[int(share * 10)] += name in known
            if not set(ids[:3]) & set(known):
                misses.append(f"is {known}, said {causes[:3]}")
        if case["fix_words"] and "not_memory" not in case["accepted"]:
            count["fix"] += 1
            rows = [json.dumps(one).lower() for one in remedies]
            at = [i for i, row in enumerate(rows) if any(word in row for word in case["fix_words"])]
            count["fix told"] += bool(at)
            count["upper half"] += bool(at) and at[0] < (len(rows) + 1) // 2
            if not at:
                misses.append(f"fixed by {case['fix_words']}, said {[one['id'] for one in remedies]}")
        if verbose:
            for miss in misses:
                print(case["id"], case["tool"], miss)
    share = {name: f"{count[name]} of {count[of]} ({count[name] / count[of]:.0%})"
             for name, of in (("told", "cause"), ("first", "cause"), ("three", "cause"), ("bold and wrong", "cause"),
                              ("fix told", "fix"), ("upper half", "fix"), ("no alarm", "no lack")) if count[of]}
    print(f"{half}: {len(cases)} texts")
    for name, words in (("told", "a lack of memory is recognised"), ("first", "the settled cause is the first"),
                        ("three", "... among the first three"), ("bold and wrong", "a wrong cause above 0.5"),
                        ("fix told", "what worked is among the remedies"),
                        ("upper half", "... in their upper half"), ("no alarm", "no lack of memory, and none told")):
        print(f"  {words:36} {share.get(name, '-')}")
    print("  right, by confidence: ", ", ".join(f"{bin / 10:.1f}: {right[bin]} of {said[bin]}" for bin in sorted(said)))


if __name__ == "__main__":
    main()
