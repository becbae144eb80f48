# SPDX-License-Identifier: Apache-2.0
"""What tests of dry runs share: how `ullage` is called, and which Pythons there are."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

MIB = 1 << 20
FAILS = """
import torch
total = torch.ones(3, device="cuda").sum()
assert total.item() == 3, "a computed value"
"""


class Dry:
    def __init__(self, bin_folder, cuda, cpu, folder):
        self.bin, self.cuda, self.cpu = pathlib.Path(bin_folder).resolve(), cuda, cpu
        self.folder = pathlib.Path(folder)

    def ullage(self, *words, code=0, **variables):
        done = subprocess.run([str(self.bin / "ullage"), *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **variables})
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done


def main(cases, make=Dry) -> int:
    """Runs the cases with what `make` makes of the words of the command line and a folder, which is removed."""
    if not pathlib.Path(sys.argv[2]).exists():
        print("skipped: no .venv-cuda with a CUDA build of torch (tools/setup cuda makes it)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run_cases(cases, make(*sys.argv[1:4], folder), only="".join(sys.argv[4:5]))
    return 0
