#!/usr/bin/env python3
"""One word for recompute, rerun and remake ("recompute"), and one meaning for settle.

usage: words.py ROOT    (a checkout, before or after rooms_move.py; nothing is committed)

Exact words only: an identifier is changed where it stands in one of the tables below. What is left of the old words is
said at the end. Run twice it changes nothing.

recompute: bytes that were given up are had again by an op that is run again. "a recompute", "recomputes": the noun.
settle (Store::settle): staged pages are put behind a vacated range. All other meanings have words of their own.
Formats: none was released (CHANGELOG: "0.1.0 (not released)"), so the plan file's "do":"rerun" and the report's "reruns"
go along. "adopted_at_step", "recomputed_ops" and the others say what they said.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from house_format import format_changed  # noqa: E402
from rooms_move import ROOMS, by_room, filled_comments, room_first, sorted_includes  # noqa: E402

# Files by name, wherever they lie.
FILES = {
    "rerun.h": "recompute_rules.h", "rerun.cpp": "recompute_rules.cpp", "rerun_test.cpp": "recompute_rules_test.cpp",
    "remakings.h": "recomputes.h", "remakings.cpp": "recomputes.cpp", "remaking_ways.h": "recompute_ways.h",
    "remaker.h": "recomputer.h",
}
DATA = {"tests/data/messages/settled.jsonl": "tests/data/messages/agreed.jsonl"}

# First of all: words whose change depends on what stands around them. A file (fnmatch on its path), what, what instead.
AROUND = [
    # plan::Rerun is the rule of an op's name; Action::What::Rerun is the action.
    ("*", r"\bWhat::Rerun\b", "What::Recompute"),
    ("*", r"\benum class Rerun\b", "enum class RecomputeRule"),
    ("*", r"\bRerun::(?=[A-Z])", "RecomputeRule::"),
    ("*", r"\bplan::Rerun\b", "plan::RecomputeRule"),
    ("*", r"\bRerun rerun_of\(", "RecomputeRule recompute_rule_of("),
    ("*", r"\bconst Rerun (rule|how)\b", r"const RecomputeRule \1"),
    ("*/rerun.cpp", r"\bRerun rerun;", "RecomputeRule rule;"),
    ("*/recompute_rules.cpp", r"\bRerun rerun;", "RecomputeRule rule;"),
    ("*/recompute_rules.cpp", r"\bfamily\.rerun\b", "family.rule"),
    ("*/recompute_rules_test.cpp", r"\bTEST\(Rerun\b", "TEST(RecomputeRules"),
    ("*/recompute_rules_test.cpp", r"\bRerun (?=\w+\()", "RecomputeRule "),
    # A verb's form where the word stands as one.
    ("*", r"\b(cannot|can) be rerun\b", r"\1 be recomputed"),
    ("*", r"\bReruns for who\b", "Recomputes for who"),
    ("*", r"\bits Remaking::", "its Recompute::"),
    # Figures in columns, as wide as their names.
    ("tests/*.py", r"\{plan\.get\(name\) or 0:6\}", "{plan.get(name) or 0:{max(6, len(name))}}"),
    ("tests/*.py", r"\{plan\.get\(name, 0\):6\}", "{plan.get(name, 0):{max(6, len(name))}}"),
    ("tests/runtime/test_random_plans.py", r"spills rescues", "spills  rescues"),
    ("docs/cli.md", r'"reruns":N,"spills":N,         ops', '"recomputes":N,"spills":N,     ops'),
    # settle: of a device, the work that it was given is waited for.
    *[(place, r"\bsettle\b(?=\(|\;| =|\b)", "synchronize") for place in
      ("src/ullage/cuda/*", "tests/cuda/*", "bench/card_check.cpp", "bench/card_train.py", "*/budgeted_device.*",
       "*/card_device.*", "*/recorder.*", "*/planning.*", "*/runtime/session*", "*/planned_paging.*")],
    ("src/ullage/cuda/*", r"\bsettled\b", "done"),
    # settle: marks of storages are brought up to date.
    ("*/storage_marks.*", r"\bsettle\b", "update"),
    ("*/pool.h", r"\bmarks->settle\(", "marks->update("),
    ("*/pool.cpp", r"\bmarks->settle\(", "marks->update("),
    # settle: the tape hands back what it gave up.
    ("*/tape.*", r"\bsettle\b", "hand_back"),
    ("*/plan_follower.*", r"\bsettle\b", "hand_back"),
    ("*/plan_follower.*", r"\bsettled_down_\b", "handed_back_"),
    ("*/plan_follower.*", r"\bsettled_\b", "follows_one_"),
    # settle: a limit is counted anew.
    ("*/store/*", r"\bSee Limit::settle\(\)", "See Limit::recount()"),
    ("*/store/store.h", r"\bvirtual bool settle\(\) \{", "virtual bool recount() {"),
    ("*/store/store.h", r"\blimit_\.settle\(\)", "limit_.recount()"),
    ("*/budget.h", r"\bsettle\(\)", "recount()"),
    ("*/budget_test.cpp", r"\bsettle\(\)", "recount()"),
    ("tests/*", r"\bbool settle\(\) override", "bool recount() override"),
    ("*/store/pager*", r"\bint(&?) settled\b", r"int\1 recounts"),
    ("*/store/pager*", r"\bsettled\+\+", "recounts++"),
    ("*/store/pager*", r"(?<=, )settled\)", "recounts)"),
    ("*/store/*", r"the limit is settled before", "the limit is counted anew before"),
    # settle: each of these once.
    ("*/launcher.cpp", r"\bsettle\b", "set_up"),
    ("*/take_index.cpp", r"\bsettle\b", "drop_ended"),
    ("tests/card_torch/card_call.*", r"\bsettle\b", "carry_over"),
    ("tests/dcgan/picture_feed_test.cpp", r"\bsettled\b", "loaded_at_rest"),
    ("tests/report/browser.py", r"Sizes settle one frame", "Sizes are final one frame"),
    # settle: what a thread of messages agreed on.
    ("tests/diagnose/real_test.cpp", r"causes settled in", "causes agreed on in"),
    ("tests/diagnose/real_test.cpp", r"threads settled \(", "threads agreed on ("),
    ("tests/diagnose/real_test.cpp", r"\bsettled\b", "agreed"),
    ("tests/diagnose/real_test.cpp", r"\bSettledByAThreadAreAmong", "AgreedOnInAThreadAreAmong"),
    ("tests/data/messages/*", r'"settled_cause"', '"agreed_cause"'),
    ("tests/data/messages/README.md", r"settled on\b", "agreed on"),
    ("tests/data/messages/README.md", r"\bsettled\.jsonl", "agreed.jsonl"),
    ("docs/*", r"cause a thread settled\b", "cause a thread agreed on"),
    ("docs/*", r"\bsettled\.jsonl", "agreed.jsonl"),
    ("docs/*", r"\bsettled cause\b", "agreed cause"),
]
# Then exact words, in every file.
WORDS = {
    # file names in text
    "remaking_ways": "recompute_ways", "rerun_test": "recompute_rules_test",
    # types
    "Remaking": "Recompute", "RemakingWays": "RecomputeWays", "Remakings": "Recomputes", "Remaker": "Recomputer",
    "Rerun": "Recompute", "Reruns": "Recomputes", "Remade": "Recomputed",
    # functions, members, variables, and the same words in sentences
    "rerun": "recompute", "reruns": "recomputes", "reruns_": "recomputes_", "rerunnable": "recomputable",
    "rerun_of": "recompute_rule_of", "rerun_of_op": "recompute_of_op", "rerun_at": "recompute_at",
    "rerun_before": "recompute_before", "rerun_after": "recompute_after", "rerun_ops": "recomputed_ops",
    "rerun_seconds": "recompute_seconds", "find_reruns": "find_recomputes", "misfit_of_rerun": "misfit_of_recompute",
    "plan_reruns": "plan_recomputes", "recompute_us": "recompute_us",
    "rerun_of_unknown_op": "recompute_of_unknown_op", "rerun_keeps_twice": "recompute_keeps_twice",
    "rerun_keeps_anothers": "recompute_keeps_anothers", "rerun_before_the_op_ran": "recompute_before_the_op_ran",
    "remake": "recompute", "remakes": "recomputes", "remakes_": "recomputes_", "remade": "recomputed",
    "remade_": "recomputed_", "remaking": "recomputing", "remakings": "recomputes", "remaker": "recomputer",
    "remaker_": "recomputer_", "set_remaker": "set_recomputer", "open_with_remaker": "open_with_recomputer",
    "remaking_on": "recomputing_on", "can_remake": "can_recompute", "cannot_remake": "cannot_recompute",
    "remake_in_place": "recompute_in_place", "remake_all": "recompute_all", "add_remakings": "add_recomputes",
    # tests
    "WhoCannotRemakeSaysSo": "WhoCannotRecomputeSaysSo",
    "WhatIsNeededToRemakeIsRemadeFirst": "WhatIsNeededToRecomputeIsRecomputedFirst",
    "RemakesInPlaceInAStorageOfItsOwnAndHandsItOver": "RecomputesInPlaceInAStorageOfItsOwnAndHandsItOver",
    "RefusesARerunThatReadsWhatIsNotThere": "RefusesARecomputeThatReadsWhatIsNotThere",
    "RefusesARerunThatReadsWhatDied": "RefusesARecomputeThatReadsWhatDied",
    "RefusesARerunOfAnOpWithoutOne": "RefusesARecomputeOfAnOpWithoutOne",
    "RefusesARerunOfAStaleExternalValue": "RefusesARecomputeOfAStaleExternalValue",
    "RefusesARerunInPlaceUponTheProgramsOwnStorage": "RefusesARecomputeInPlaceUponTheProgramsOwnStorage",
    "RefusesARerunInPlaceOfWhatIsSpilledOrWritten": "RefusesARecomputeInPlaceOfWhatIsSpilledOrWritten",
    "RefusesARerunInPlaceOfWhatAnotherOneWroteOver": "RefusesARecomputeInPlaceOfWhatAnotherOneWroteOver",
    "NeverPassesTheBestOfAllSchedulesWithReruns": "NeverPassesTheBestOfAllSchedulesWithRecomputes",
    "HoldsWhatMakesRerunsCheap": "HoldsWhatMakesRecomputesCheap",
    "CountsADroppedValueAndItsRerun": "CountsADroppedValueAndItsRecompute",
    "ARerunsBytesAreThoseThatItBringsBack": "ARecomputesBytesAreThoseThatItBringsBack",
    "ARerunMayStandBehindItsOwnOp": "ARecomputeMayStandBehindItsOwnOp",
    # settle
    "settle_vector_math": "prepare_vector_math", "settle_marks": "update_marks", "settle_limit": "recount_limit",
    "make_room_or_settle": "make_room_or_recount", "kMostSettled": "kMostRecounts", "settled_at": "storage_at_rest",
    "settle_times": "fill_in_times", "settle_layout": "find_layout", "settle_least": "find_least",
    "settle_tensor": "carry_over_tensor",
}
# What may be left: words of others, and parts of longer names that mean something else.
LEFT = re.compile(r"\w*(?:[Rr]erun|[Rr]emak|[Rr]emade|[Ss]ettl)\w*")
FINE = {"settle", "settled", "DroppedBytesAreMadeAgainWhenTheyAreTouched", "AreRunAgainWithTheirOwnValues", "AreMadeLongOnes",
        "ObjectsTakeAStateAfterOthersWereMade", "ClosureRunsTheForwardPass", "ClosureRunsTheBackwardPass"}
FINE_PLACES = ("*/store/store.*", "*/store/pager*", "*/store/planned_moves*", "*/sim/pool_model.cpp", "tests/store/*",
               "tests/sim/*")  # Store::settle
SKIP = ("tests/data/*.ullage", "tests/data/*.pickle*", "tests/data/traces/*", "tests/data/snapshots/*", "*.png", "*.jpg")


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


def rewritten(name, text):
    for place, what, instead in AROUND:
        if fnmatch.fnmatch(name, place):
            text = re.sub(what, instead, text)
    text = FILE_WORDS.sub(lambda match: FILES[match.group(0)], text)
    text = re.sub(r"\w+", lambda match: WORDS.get(match.group(0), match.group(0)), text)
    return articles(text)


# "a" stays "a": no word begins with a vowel that did not before. Two words that became one are said once.
def articles(text):
    return re.sub(r"\brecompute or recomputed\b", "recomputed", text)


def public_lines(match):
    lines = ["  public"]
    for header in sorted(match.group(0).replace("\n  public", "").split()[1:], key=room_first):
        if len(lines[-1]) + 1 + len(header) > 120:
            lines.append("  public")
        lines[-1] += " " + header
    return "\n".join(lines) + "\n"


FILE_WORDS = re.compile("|".join(rf"(?<![\w]){re.escape(name)}(?!\w)" for name in sorted(FILES, key=len, reverse=True)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    moved = 0
    for name in git(root, "ls-files").splitlines():
        to = DATA.get(name) or str(pathlib.PurePath(name).with_name(FILES.get(pathlib.PurePath(name).name, pathlib.PurePath(name).name)))
        if to != name:
            git(root, "mv", name, to)
            moved += 1
    changed = 0
    left = []
    for name in git(root, "ls-files").splitlines():
        path = root / name
        if any(fnmatch.fnmatch(name, place) for place in SKIP) or not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        new = rewritten(name, text)
        if new != text:
            if name.endswith((".h", ".cpp")):
                new = "\n".join(filled_comments(sorted_includes(new.split("\n")), set(text.split("\n"))))
            elif name.endswith("layers.txt"):
                new = re.sub(r"(?:^  public .*\n)+", public_lines, new, flags=re.M)
            elif name.endswith("CMakeLists.txt") and pathlib.PurePath(name).parent.name in ROOMS:
                new = re.sub(r"^( *)(SOURCES|HEADERS)\s+((?:[^\s()#]+\s+)*?[^\s()#]+)(?=\s+[A-Z_]+\s|\s*\))", by_room, new, flags=re.M)
            path.write_text(new, encoding="utf-8")
            changed += 1
        for number, line in enumerate(new.splitlines(), 1):
            for word in LEFT.findall(line):
                fine = word in FINE and (not word.lower().startswith("settle") or
                                         any(fnmatch.fnmatch(name, place) for place in FINE_PLACES))
                if not fine:
                    left.append(f"{name}:{number}: {word}")
    format_changed(root)
    for line in left:
        print("left:", line[:200])
    print(f"{moved} files renamed, {changed} files changed, {len(left)} old words left")


if __name__ == "__main__":
    main()
