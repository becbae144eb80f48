# SPDX-License-Identifier: Apache-2.0
"""Negative control: builds deliberately wrong models and counts the recorded cases that notice each.

Each wrong model is one line of src/ullage/sim changed in a copy; a change that no longer applies fails the test, so
that it is carried along when the model is rewritten.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    right: str  # occurs exactly once in the file
    wrong: str


MUTANTS = [
    Mutant("nothing is changed", "caching.cpp", "// SPDX", "// SPDX"),
    Mutant("ties: lowest address", "caching_blocks.cpp", "if (settings_.ties == Ties::LowestAddress) return 0;",
           "return 0;"),
    Mutant("ties: oldest block", "caching_blocks.cpp",
           "if (settings_.ties == Ties::OldestSegment && parent) return parent->born;", ""),
    Mutant("small pool: a rest of 512 bytes is not split off", "caching.cpp", "rest >= CachingSettings::kUnit",
           "rest > CachingSettings::kUnit"),
    Mutant("large pool: a rest of 1 MiB is split off", "caching.cpp", "rest > CachingSettings::kSmall",
           "rest >= CachingSettings::kSmall"),
    Mutant("a block of 1 MiB is large", "caching.cpp", "CachingSettings::is_small(size)",
           "(size < CachingSettings::kSmall)"),
    Mutant("a block of 10 MiB takes a large segment", "caching_sizes.cpp", "block < kOwnSegment",
           "block <= kOwnSegment"),
    Mutant("small segments are released first", "caching_release.cpp", "for (Pool& pool : pools_) {",
           "for (std::size_t at : {1u, 0u}) { Pool& pool = pools_[at];"),
    Mutant("no try after all is released", "caching.cpp",
           "++stats_.retries;\n  return take_new(pool, size, segment, stream);", "++stats_.retries;\n  return kNone;"),
    Mutant("pending frees are not waited for", "caching_release.cpp", "pending_.wait(done);", ""),
    Mutant("garbage: older than the mean", "caching_release.cpp", "static_cast<double>(age(index)) < mean",
           "static_cast<double>(age(index)) <= mean"),
    Mutant("max_split: a block of just that size is used", "caching.cpp", "size < cap && entry.size >= cap",
           "size < cap && entry.size > cap"),
    Mutant("max_split: a request of just that size is split", "caching.cpp", "size < *settings_.max_split)",
           "size <= *settings_.max_split)"),
    Mutant("rounding: a block larger by just that is used", "caching.cpp", "entry.size >= size + slack",
           "entry.size > size + slack"),
    Mutant("rounding: 20 MiB unless set", "caching.cpp", "value_or(settings_.large_segment)", "value_or(20_MiB)"),
    Mutant("oversize blocks: one more is released", "caching_release.cpp", "released < wanted && free.at(at)",
           "released <= wanted && free.at(at)"),
    Mutant("limit: reached is passed", "caching.cpp",
           "if (limit_ && stats_.reserved + segment > *limit_) return kNone;",
           "if (limit_ && stats_.reserved + segment >= *limit_) return kNone;"),
    Mutant("expandable: plain best fit", "caching_expandable.cpp", "if (!next || reach(next) >= reach(best)) break;",
           "break;"),
    Mutant("expandable: the free piece before is left", "caching_expandable.cpp",
           "idle(blocks_[unmapped].before) ? blocks_[unmapped].before : unmapped", "unmapped"),
    Mutant("streams are polled in order of number", "pending_frees.cpp",
           "return ((kCudaDevice0 | queues_[queue].c10_stream) * kGolden) >> (64 - log2_of(buckets_));",
           "return queue % buckets_;"),
    Mutant("a request of 2^60 bytes is tried", "caching.cpp", "requested >= kRefusedFrom",
           "requested > kRefusedFrom"),
    Mutant("intervals: '>' from the last one named", "caching_settings.cpp", "static_cast<std::ptrdiff_t>(last + 1)",
           "static_cast<std::ptrdiff_t>(last)"),
]


@dataclasses.dataclass
class Build:
    compiler: list[str]
    flags: list[str]
    sources: pathlib.Path  # src
    objects: list[str]  # of allocator_oracle and the libraries
    libraries: list[str]
    scratch: pathlib.Path
    recording: pathlib.Path


def noticed(build: Build, number: int, mutant: Mutant) -> tuple[int, str]:
    """Returns how many recorded cases notice the mutant, and a line about it."""
    text = (build.sources / "ullage" / "sim" / mutant.file).read_text()
    if text.count(mutant.right) != 1:
        return -1, f"'{mutant.right}' stands {text.count(mutant.right)} times in {mutant.file}; rewrite this mutant"
    source = build.scratch / f"{number}-{mutant.file}"
    program = build.scratch / f"oracle-{number}"
    source.write_text(text.replace(mutant.right, mutant.wrong))
    # The changed object comes before the library, so that the linker takes it and not the library's.
    command = [*build.compiler, "-std=c++20", "-O1", "-w", *build.flags, f"-I{build.sources}", str(source),
               *build.objects, *build.libraries, "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        return -1, f"does not compile: {made.stderr[:600]}"
    ran = subprocess.run([program, "check", build.recording], capture_output=True, text=True)
    found = re.match(r"(\d+) of \d+ cases differ", ran.stdout)
    return (int(found.group(1)), found.group()) if found else (-1, f"the program said: {ran.stdout} {ran.stderr}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("recording", type=pathlib.Path)
    parser.add_argument("--compiler", default="c++", help="with its arguments")
    parser.add_argument("--flags", default="")
    parser.add_argument("--objects", default="", help="of the program, separated by ;")
    parser.add_argument("--libraries", default="", help="likewise")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    listed = lambda text: [item for item in text.split(";") if item]
    build = Build(shlex.split(options.compiler), shlex.split(options.flags),
                  pathlib.Path(__file__).resolve().parents[2] / "src", listed(options.objects),
                  listed(options.libraries), options.scratch.resolve(), options.recording)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = threads.map(lambda numbered: noticed(build, *numbered), enumerate(MUTANTS))
        for mutant, (cases, said) in zip(MUTANTS, results):
            good = cases == 0 if mutant is MUTANTS[0] else cases > 0
            bad += not good
            print(f"{mutant.name:50} {said}{'' if good else '  FAILED'}", flush=True)
    print(f"{len(MUTANTS) - 1} wrong models, {bad} of {len(MUTANTS)} lines are not as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
