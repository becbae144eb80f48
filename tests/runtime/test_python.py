# SPDX-License-Identifier: Apache-2.0
"""Tests Python under the pool: training, numpy, saving, a DataLoader's forked workers, torch's own exception.

usage: test_python.py ULLAGE LIBULLAGE_TORCH
"""
import json
import pathlib
import subprocess
import sys
import tempfile

INNER = """
import ctypes, sys, io
import numpy, torch
ctypes.CDLL(sys.argv[1])

class Pictures(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((3, 64, 64), float(i)), i

net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.LazyLinear(10))
seen = 0
optimizer = None
for pictures, labels in torch.utils.data.DataLoader(Pictures(), batch_size=8, num_workers=2):
    seen += len(labels)
    loss = net(pictures).pow(2).mean()
    if optimizer is None: optimizer = torch.optim.Adam(net.parameters())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
assert seen == 64, seen
assert torch.arange(5).numpy().tolist() == [0, 1, 2, 3, 4]
file = io.BytesIO(); torch.save(net.state_dict(), file); file.seek(0); torch.load(file)
torch.ones(1000).share_memory_()
try:
    torch.empty(8 << 30, dtype=torch.uint8)
    sys.exit("8 GiB were served")
except torch.OutOfMemoryError as error:
    assert "8.00 GiB" in str(error) and "budget of 1.00 GiB" in str(error), error
print("fine")
"""


def main() -> None:
    ullage, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "run.json")
        done = subprocess.run(
            [ullage, "run", "--memory", "1GiB", "--report", str(report), "--", sys.executable, "-c", INNER, library],
            capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        assert done.stdout == "fine\n", done.stdout
        told = json.loads(report.read_text())
    assert told["outcome"] == "done", told
    assert told["pool_peak_bytes"] > 1 << 20, told
    assert told["process_peak_bytes"] <= told["budget_bytes"] == 1 << 30, told
    print("python under the pool:", {k: told[k] for k in ("pool_peak_bytes", "process_peak_bytes", "outcome")})


if __name__ == "__main__":
    main()
