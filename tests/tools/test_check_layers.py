# SPDX-License-Identifier: Apache-2.0
"""The checker of layers finds each kind of wrong include, and nothing in a right tree."""
import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).parents[2] / "tools" / "check_layers.py"

RIGHT = {
    "src/ullage/base/bytes.h": '#include <cstdint>\n',
    "src/ullage/store/store.h": '#include "ullage/base/bytes.h"\n#include "ullage/store/pages.h"\n',
    "src/ullage/runtime/pool.cpp": '#include "ullage/store/store.h"\n#include <c10/core/Allocator.h>\n',
    "src/ullage/preload/preload.cpp": '#include <dlfcn.h>\n#include "ullage/base/bytes.h"\n',
    "src/ullage/cli/main.cpp": '#include "ullage/report/run_report.h"\n#include "ullage/store/ledger.h"\n',
    "workloads/dcgan/trainer.cpp": '#include "dcgan/networks.h"\n#include "image/load.h"\n#include <torch/nn.h>\n',
    "workloads/image/load.cpp": '#include "image/decode.h"\n#include "ullage/base/bytes.h"\n',
}
WRONG = {
    "src/ullage/base/bytes.h": '#include "ullage/store/store.h"\n',
    "src/ullage/store/store.h": "#include <ATen/ATen.h>\n",
    "src/ullage/read/snapshot.cpp": '#include "ullage/runtime/pool.h"\n',
    "src/ullage/report/page.cpp": '#include "ullage/read/snapshot.h"\n',
    "src/ullage/store/slabs.cpp": '#include "slabs.h"\n',
    "src/ullage/preload/preload.cpp": '#include "ullage/store/ledger.h"\n',
    "src/ullage/attic/old.cpp": "\n",
    "workloads/image/load.cpp": "#include <torch/torch.h>\n",
    "workloads/image/decode.cpp": '#include "dcgan/trainer.h"\n',
}


def check(files: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main() -> None:
    code, said = check(RIGHT)
    assert code == 0, said
    for name, text in WRONG.items():
        code, said = check({**RIGHT, name: text})
        assert code == 1 and f"{name}:1:" in said, (name, said)
        assert len(said.splitlines()) == 2, (name, said)
    code, said = check({})
    assert code == 1, "an empty tree is no right tree"
    print(f"{len(RIGHT)} right files, {len(WRONG)} wrong ones found")


if __name__ == "__main__":
    main()
