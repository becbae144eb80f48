# SPDX-License-Identifier: Apache-2.0
"""Compares the model of the caching allocator with torch's own, event for event; README.md says how.

Exits with 77 (skipped, with the reason) if there is no CUDA wheel of torch 2.11 or later, or no CUDA 13 headers.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

import wheels

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
RUNTIME = "libcudart.so.13"
FAKE = ("fake_cudart.cpp", "fake_driver.cpp", "fake_device.cpp")


class Skip(Exception):
    pass


@dataclasses.dataclass
class Size:
    """How many operations each named case has and each random case, and how many random cases there are."""

    named: int
    random: int
    seeds: int


SIZES = {"quick": Size(5_000, 2_000, 60), "full": Size(100_000, 5_000, 300)}


class Builder:
    """Compiles what stands in for CUDA, and the program around the real allocator, once for each version."""

    def __init__(self, compiler: list[str], cuda: pathlib.Path, scratch: pathlib.Path):
        self.compiler, self.cuda, self.scratch = compiler, cuda, scratch

    def run(self, output: str, *arguments: object) -> pathlib.Path:
        file = self.scratch / output
        command = [*self.compiler, "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", *map(str, arguments), "-o", str(file)]
        subprocess.run(command, check=True, cwd=HERE)
        return file

    def stand_ins(self) -> None:
        self.run("libnvidia-ml.so.1", "-shared", "fake_nvml.cpp", "-Wl,-soname,libnvidia-ml.so.1")
        self.run(RUNTIME, "-shared", *FAKE, "-isystem", self.cuda, f"-Wl,-soname,{RUNTIME}",
                 "-Wl,--version-script=fake_cudart.map")

    def replay(self, torch: wheels.Torch) -> pathlib.Path:
        libraries = torch.root / "lib"
        # DT_RPATH also applies when libc10_cuda.so searches its libraries, so it finds the stand-ins and no real
        # driver.
        return self.run(f"replay_real-{torch.version}", "replay_real.cpp", "-isystem", torch.root / "include",
                        "-isystem", self.cuda, self.scratch / RUNTIME, f"-L{libraries}", "-lc10_cuda", "-lc10",
                        f"-Wl,-rpath,{self.scratch}:{libraries}", "-Wl,--disable-new-dtags")


def cuda_headers(given: str | None) -> pathlib.Path:
    for place in filter(None, [given, os.environ.get("ULLAGE_CUDA_INCLUDE")]):
        folder = pathlib.Path(place).resolve()
        header = folder / "cuda_runtime_api.h"
        if header.exists() and (folder / "cuda.h").exists():
            version = re.search(r"#define CUDART_VERSION\s+(\d+)", header.read_text())
            if version and int(version.group(1)) // 1000 == 13:
                return folder
    raise Skip("no CUDA 13 headers; tools/oracle fetches them, or set ULLAGE_CUDA_INCLUDE")


def torches(folder: str | None, scratch: pathlib.Path) -> list[wheels.Torch]:
    found = wheels.find(pathlib.Path(folder) if folder else None, scratch / "unpacked")
    fitting = [torch for torch in found if torch.runtime() == RUNTIME]
    for torch in found:
        if torch not in fitting:
            print(f"torch {torch.version} is left out: it asks for {torch.runtime()}, the stand-in is {RUNTIME}")
    if not fitting:
        raise Skip("no CUDA wheel of torch 2.11 or later; tools/oracle fetches some, or set ULLAGE_ORACLE_WHEELS")
    return fitting


def compare(oracle: str, torch: wheels.Torch, replay: pathlib.Path, scratch: pathlib.Path, size: Size) -> int:
    """Returns the number of runs that found a difference."""
    bad = 0
    for addresses in ("growing", "first_fit"):
        common = [oracle, "compare", "--torch", torch.version, "--replay", replay, "--scratch", scratch, "--addresses",
                  addresses]
        named = ["--operations", size.named]
        drawn = ["--operations", size.random, "--random", "--seeds", size.seeds]
        for which in (named, drawn):
            bad += subprocess.run(list(map(str, common + which))).returncode != 0
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("oracle", help="the program allocator_oracle")
    parser.add_argument("scratch", type=pathlib.Path, help="a folder for what is built here")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--wheels", default=None, help="folder of wheels, packed or unpacked")
    parser.add_argument("--cuda-include", default=None)
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--record", type=pathlib.Path, help="writes recordings to this folder instead")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    scratch = options.scratch.resolve()
    try:
        found = torches(os.environ.get("ULLAGE_ORACLE_WHEELS") or options.wheels, scratch)
        cuda = cuda_headers(options.cuda_include)
        if shutil.which(options.compiler) is None:
            raise Skip(f"no compiler {options.compiler}")
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    builder = Builder([options.compiler], cuda, scratch)
    builder.stand_ins()
    bad = 0
    for torch in found:
        replay = builder.replay(torch)
        if options.record:
            file = options.record / f"torch-{torch.version}.json"
            subprocess.run([options.oracle, "record", "--torch", torch.version, "--replay", replay, "--scratch",
                            scratch, file], check=True)
            print(f"recorded {file}")
        else:
            bad += compare(options.oracle, torch, replay, scratch, SIZES[options.size])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
