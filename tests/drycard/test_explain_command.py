# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage explain -- COMMAND` and ULLAGE_EXPLAIN with PyTorch's CUDA build on a dry card.

usage: test_explain_command.py BIN_FOLDER PYTHON_WITH_CUDA_TORCH [CASE]
Needs .venv-cuda, which `tools/setup cuda` makes; is skipped without it.
"""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402
from quick_runs import FIRST_LINE  # noqa: E402

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
MIB = 1 << 20
PROGRAM = """
import sys
import torch
net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
opt = torch.optim.Adam(net.parameters())
for i in range(6):
    net(torch.randn(64, 512, device="cuda")).square().mean().backward()
    opt.step()
    opt.zero_grad()
print("trained", flush=True)
held = []
def fill():
    while True:
        held.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))
"""
END = {
    "fine": "",
    "dies": "fill()",
    "catches": "try: fill()\nexcept torch.cuda.OutOfMemoryError: held.clear(); print('went on')",
    "gives_up": "try: fill()\nexcept RuntimeError: sys.exit(5)",
    "tries": "for _ in range(500):\n    try: torch.empty(4 << 30, dtype=torch.uint8, device='cuda')\n    except RuntimeError: pass\n",
    "thread": "import threading\nt = threading.Thread(target=fill)\nt.start()\nt.join()\nsys.exit(9)",
    "backward": "x = torch.randn(3 << 20, 64, device='cuda', requires_grad=True)\n(x * 2).sum().backward()\nfill()",
    "fails_later": "try: fill()\nexcept torch.cuda.OutOfMemoryError: held.clear()\nraise KeyError('not of memory')",
    "fails": "raise KeyError('not of memory')",
}
WORKER = """
import os, signal, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        if i == 40: os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(16)
if __name__ == "__main__":
    for x in DataLoader(Data(), batch_size=4, num_workers=2): x.cuda().sum()
"""
CHILDREN = """
import torch
def child(rank):
    if rank == 1:
        torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
if __name__ == "__main__":
    torch.multiprocessing.spawn(child, nprocs=2)
"""
HOST = "import torch\ntorch.empty(1 << 50, dtype=torch.uint8)\n"
ARMED = "import site, runpy, sys; site.addsitedir(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"


class Dry:
    def __init__(self, bin_folder, python, folder):
        self.bin, self.python, self.folder = pathlib.Path(bin_folder).resolve(), python, pathlib.Path(folder)
        programs = {**{name: FIRST_LINE + PROGRAM + end for name, end in END.items()}, "worker": WORKER, "children": CHILDREN, "host": HOST}
        for name, text in programs.items():
            (self.folder / f"{name}.py").write_text(text)
        self.kept = self.folder / "kept"

    def run(self, *words, code, **variables):
        """Runs the words on a card of 2 GiB. The dry run's own exit code is the command's."""
        for file in self.files():
            os.unlink(self.kept / file)
        done = subprocess.run([str(self.bin / "ullage"), "run", "--dry", "--quiet", "--device", "cuda:2GiB", "--", *map(str, words)],
                              cwd=self.folder, capture_output=True, text=True, env={**os.environ, **variables})
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    def explain(self, program, *options, code, before=()):
        return self.run(self.bin / "ullage", "explain", "--keep", "kept", *options, "--", self.python, *before, program + ".py", code=code)

    def armed(self, program, code, **variables):
        """Runs as in a Python with the package: its folder of packages has ullage.pth."""
        return self.run(self.python, "-c", ARMED, PACKAGE, program + ".py", code=code, ULLAGE_EXPLAIN="kept", **variables)

    def files(self, end=""):
        return sorted(one for one in os.listdir(self.kept) if one.endswith(end)) if self.kept.exists() else []

    def snapshot(self):
        (name,) = self.files(".pickle")
        with open(self.kept / name, "rb") as file:
            return pickle.load(file)


def failures(snapshot):
    return [one for trace in snapshot["device_traces"] for one in trace if one["action"] == "oom"]


def test_nothing_is_written_where_nothing_fails(dry: Dry) -> None:
    done = dry.explain("fine", code=0)
    assert (done.stdout, done.stderr) == ("trained\n", ""), done
    done = dry.explain("fails", code=1)
    assert "ended with exit code 1; nothing says that memory ran out" in done.stderr, done.stderr
    assert not dry.kept.exists(), dry.files()


def test_a_program_that_dies(dry: Dry) -> None:
    done = dry.explain("dies", "--html", "page.html", code=1)
    assert done.stdout == "trained\n", done.stdout
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr, "the program's own words"
    assert "ullage: 1 request was refused, 100.00 MiB on GPU 0" in done.stderr, done.stderr
    answer = done.stderr[done.stderr.index("ullage: wrote kept/oom-"):]
    assert "dies.py" in answer, answer  # the line that holds the bytes
    snapshot = dry.snapshot()
    assert len(failures(snapshot)) == 1 and any("fill" == frame["name"] for frame in failures(snapshot)[0]["frames"])
    assert len(dry.files(".log")) == 1
    assert "<!doctype html>" in (dry.folder / "page.html").read_text()[:40]
    # The kept files are inputs as any other.
    for file in dry.files():
        subprocess.run([str(dry.bin / "ullage"), "explain", str(dry.kept / file)], check=True, stdout=subprocess.DEVNULL)


def test_a_program_that_catches_the_error(dry: Dry) -> None:
    done = dry.explain("catches", code=0)
    assert done.stdout == "trained\nwent on\n", done.stdout
    assert "ullage: 1 request was refused, 100.00 MiB on GPU 0" in done.stderr and "ended with exit code 0" in done.stderr
    live = sum(block["requested_size"] for segment in dry.snapshot()["segments"] for block in segment["blocks"]
               if block["state"] == "active_allocated")
    assert live > 1200 * MIB, "as it was at the failure, not when the program had let go"
    done = dry.explain("gives_up", "--json", "--out", "why.json", code=5)
    why = json.loads((dry.folder / "why.json").read_text())
    assert why["source"]["kind"] == "snapshot" and why["facts"]["requested_bytes"] == 100 * MIB, why["facts"]


def test_many_failures(dry: Dry) -> None:
    done = dry.explain("tries", code=0)
    assert "ullage: 500 requests were refused, the last 4.00 GiB" in done.stderr, done.stderr[-2000:]
    assert len(failures(dry.snapshot())) == 500, "the last of them too"


def test_other_threads(dry: Dry) -> None:
    assert "1 request was refused" in dry.explain("thread", code=9).stderr
    assert "refused" in dry.explain("backward", code=1).stderr


def test_a_worker_that_dies(dry: Dry) -> None:
    done = dry.explain("worker", code=1)
    assert "DataLoader worker" in done.stderr, done.stderr
    assert "a process was killed, most likely by the kernel" in done.stderr, done.stderr
    assert not dry.files(".pickle") and len(dry.files(".log")) == 1, dry.files()


def test_one_of_several_processes(dry: Dry) -> None:
    done = dry.explain("children", code=1)
    assert "ullage: 1 request was refused, 8.00 GiB on GPU 0" in done.stderr, done.stderr
    assert len(dry.files(".pickle")) == 1, dry.files()


def test_host_memory(dry: Dry) -> None:
    done = dry.explain("host", code=1)
    assert "1024.00 TiB" in done.stderr.split("ullage: wrote")[1] and dry.files(".log"), done.stderr


def test_a_python_that_reads_no_environment(dry: Dry) -> None:
    assert "1 request was refused" in dry.explain("dies", code=1, before=["-I", "-S", "-c",
        "import sys; sys.path[:0] = [%r]; exec(open(sys.argv[1]).read())" % str(pathlib.Path(
            subprocess.check_output([dry.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip()))]).stderr


def test_the_limit_of_events(dry: Dry) -> None:
    dry.explain("dies", "--events", "40", code=1)
    assert len(dry.snapshot()["device_traces"][0]) == 40
    dry.explain("dies", "--events", "0", code=1)
    assert len(dry.snapshot()["device_traces"][0]) == 0


def test_armed_by_the_environment(dry: Dry) -> None:
    path = f"{dry.bin}:{os.environ['PATH']}"
    assert dry.armed("fine", 0, PATH=path).stderr == "" and not dry.files()
    done = dry.armed("fails", 1, PATH=path)
    assert "ullage" not in done.stderr and not dry.files(), (done, dry.files())
    done = dry.armed("dies", 1, PATH=path)
    assert "ullage: memory ran out; " in done.stderr, done.stderr
    (text,) = dry.files(".txt")
    assert "dies.py" in (dry.kept / text).read_text() and len(dry.files()) == 3, dry.files()
    done = dry.armed("catches", 0, PATH=path)
    assert "ullage: a card refused 1 request; next: ullage explain " in done.stderr, done.stderr
    assert len(dry.files()) == 1 and len(failures(dry.snapshot())) == 1
    done = dry.armed("fails_later", 1, PATH=path)
    assert "a card refused 1 request;" in done.stderr and dry.files() == dry.files(".pickle"), (dry.files(), done.stderr)
    dry.armed("host", 1, PATH=path)
    assert [one[-4:] for one in dry.files()] == [".log", ".txt"], dry.files()
    # There is no command that could be asked.
    done = dry.armed("host", 1)
    assert dry.files() == dry.files(".log") and "next: ullage explain" in done.stderr, (dry.files(), done.stderr)


def test_both(dry: Dry) -> None:
    """A launcher below an armed environment says what was written, once, and keeps it in that folder."""
    done = dry.run(dry.bin / "ullage", "explain", "--", dry.python, "-c", ARMED, PACKAGE, "dies.py", code=1, ULLAGE_EXPLAIN="kept")
    assert done.stderr.count("was refused") == 1 and "memory ran out;" not in done.stderr, done.stderr
    assert len(dry.files(".pickle")) == 1 and not dry.files(".txt"), dry.files()


def test_workspaces_of_cublas_are_named(dry: Dry) -> None:
    """The history of a dry run has frames of Python alone. The card knows which memory cuBLAS was given."""
    ullage = str(dry.bin / "ullage")
    subprocess.run([ullage, "run", "--dry", "--quiet", "--device", "t4", "--record", "fine.pickle", "--", dry.python, "fine.py"],
                   cwd=dry.folder, check=True)
    said = subprocess.run([ullage, "explain", "fine.pickle"], cwd=dry.folder, check=True, capture_output=True, text=True).stdout
    assert "cuBLAS workspace" in said, said


def main() -> int:
    if not pathlib.Path(sys.argv[2]).exists():
        print("skipped: no .venv-cuda with a CUDA build of torch (tools/setup cuda makes it)")
        return 77
    run_cases(globals(), only="".join(sys.argv[3:4]), place=lambda folder: Dry(*sys.argv[1:3], folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
