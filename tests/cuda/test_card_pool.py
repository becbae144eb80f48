# SPDX-License-Identifier: Apache-2.0
"""Tests the allocator before PyTorch's own, for each CUDA build of torch that is here; card_pool_check.cpp says how.

usage: test_card_pool.py SCRATCH --library FILE... [--compiler C++] [--wheels FOLDER] [--cuda-include FOLDER]
[--stand-in FILE] Exits with 77 (skipped, with the reason) where no CUDA wheel of torch 2.11 or later or no CUDA 13
headers are.
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
from test_oracle import RUNTIME, SKIPPED, Builder, Skip, cuda_headers, torches  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--library", nargs="+", required=True, help="the layers below, in the order of linking")
    parser.add_argument("--stand-in", required=True, help="the driver's library")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--wheels")
    parser.add_argument("--cuda-include")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    scratch = options.scratch.resolve()
    try:
        found = torches(os.environ.get("ULLAGE_ORACLE_WHEELS") or options.wheels, scratch)
        cuda = cuda_headers(options.cuda_include)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    builder = Builder([options.compiler], cuda, scratch)
    builder.stand_ins()
    failed = []
    for torch in found:
        libraries = torch.root / "lib"
        program = builder.run(
            f"card_pool_check-{torch.version}", HERE / "card_pool_check.cpp", ROOT / "src/ullage/runtime/card/cuda_allocator.cpp",
            ROOT / "src/ullage/runtime/pool/stream_order.cpp",
            "-O1", f'-DULLAGE_STAND_IN_DRIVER="{options.stand_in}"', f"-I{ROOT / 'src'}", f"-I{HERE}",
            f"-I{ROOT / 'tests/oracle'}", "-isystem", torch.root / "include", "-isystem", cuda, *options.library,
            options.stand_in, scratch / RUNTIME, f"-L{libraries}", "-lc10_cuda", "-lc10", "-lgtest", "-lpthread", "-ldl",
            f"-Wl,-rpath,{scratch}:{libraries}:{pathlib.Path(options.stand_in).parent}", "-Wl,--disable-new-dtags")
        print(f"torch {torch.version}", flush=True)
        if subprocess.run([program]).returncode != 0:
            failed.append(torch.version)
    if failed:
        print("failed with torch " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
