# SPDX-License-Identifier: Apache-2.0
"""Tests that the checker of layers finds each kind of wrong include and wrong list, and nothing in a right tree."""
import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).parents[2] / "tools" / "check_layers.py"
WALLS = "src/ullage/layers.txt"

LAYERS = """
# A small house.
layer base:
  public bytes.h
layer store: base
  public store.h
layer plan: store
  public planner.h
  room model:
  room verify: model  # never what is searched
  room search: verify
  below words.h
layer read: base
layer report: store
layer runtime: store plan
  public pool.h
  room card:
  only card: session* start
layer preload: base
layer cli: report plan
layer workloads: runtime
inside tests/nets: runtime
"""
RIGHT = {
    WALLS: LAYERS,
    "src/ullage/base/bytes.h": "#include <cstdint>\n",
    "src/ullage/store/store.h": '#include "ullage/base/bytes.h"\n#include "ullage/store/pages.h"\n',
    "src/ullage/plan/planner.h": '#include "ullage/plan/search/moves.h"\n#include "ullage/plan/words.h"\n',
    "src/ullage/plan/words.h": '#include "ullage/base/bytes.h"\n',
    "src/ullage/plan/model/step.h": '#include "ullage/plan/words.h"\n#include "ullage/plan/model/op.h"\n',
    "src/ullage/plan/verify/machine.h": '#include "ullage/plan/model/step.h"\n',
    "src/ullage/plan/search/moves.h": '#include "ullage/plan/verify/machine.h"\n#include "ullage/plan/model/step.h"\n',
    "src/ullage/runtime/pool.h": "\n",
    "src/ullage/runtime/pool.cpp": '#include "ullage/runtime/pool.h"\n#include "ullage/store/store.h"\n#include <c10/core/Allocator.h>\n',
    "src/ullage/runtime/session_begin.cpp": '#include "ullage/runtime/card/device.h"\n',
    "src/ullage/runtime/card/device.h": "\n",
    "src/ullage/preload/preload.cpp": '#include <dlfcn.h>\n#include "ullage/base/bytes.h"\n',
    "src/ullage/cli/main.cpp": '#include "ullage/plan/planner.h"\n#include "ullage/store/store.h"\n',
    "workloads/dcgan/trainer.cpp": '#include "dcgan/networks.h"\n#include "image/load.h"\n#include <torch/nn.h>\n'
                                   "#include <ullage/runtime/pool.h>\n",
    "workloads/image/load.cpp": '#include "image/decode.h"\n#include "ullage/base/bytes.h"\n',
    "tests/plan/moves_test.cpp": '#include "helper.h"\n#include "ullage/plan/search/moves.h"\n',
    "tests/nets/nets.cpp": '#include "ullage/runtime/session.h"\n',
    "tests/cli/run_test.cpp": '#include "ullage/plan/planner.h"\n',
}
# A file, what is in it, and what is said of it.
WRONG = [
    ("src/ullage/base/bytes.h", '#include "ullage/store/store.h"\n', "base may not include store"),
    ("src/ullage/store/store.h", "#include <ATen/ATen.h>\n", "store may not see torch"),
    ("src/ullage/read/snapshot.cpp", '#include "ullage/runtime/pool.h"\n', "read may not include runtime"),
    ("src/ullage/report/page.cpp", '#include "ullage/read/snapshot.h"\n', "report may not include read"),
    ("src/ullage/store/slabs.cpp", '#include "slabs.h"\n', 'write "ullage/<folder>/<file>.h"'),
    ("src/ullage/preload/wrap.h", '#include "ullage/store/ledger.h"\n', "preload may not include store"),
    ("src/ullage/attic/old.cpp", "\n", "'attic' is no layer"),
    ("workloads/image/torch.h", "#include <torch/torch.h>\n", "image may not see torch"),
    ("workloads/image/decode.cpp", '#include "dcgan/trainer.h"\n', "image stands alone"),
    ("src/ullage/plan/planner.cpp", '#include "ullage/plan/words.h"\n#include "ullage/plan/planner.h"\n',
     "a source includes its own header first (planner.h)"),
    # Rooms.
    ("src/ullage/plan/attic/old.cpp", "\n", "'plan/attic' is no room"),
    ("src/ullage/plan/model/old/step.cpp", "\n", "'plan/model/old' is no room"),
    ("src/ullage/plan/verify/actions.cpp", '#include "ullage/plan/search/moves.h"\n', "plan/verify may not include plan/search"),
    ("src/ullage/plan/model/op.h", '#include "ullage/plan/planner.h"\n', "plan/model may not include what is at the top of plan"),
    ("src/ullage/plan/words.h", '#include "ullage/plan/model/step.h"\n', "words.h is below the rooms of plan"),
    ("src/ullage/runtime/pool.h", '#include "ullage/runtime/card/device.h"\n', "pool.h may not include runtime/card"),
    # What is public.
    ("src/ullage/cli/plan.cpp", '#include "ullage/plan/search/moves.h"\n', "search/moves.h is not public in plan"),
    ("tests/cli/plan_test.cpp", '#include "ullage/plan/search/moves.h"\n', "search/moves.h is not public in plan"),
    ("bench/plan_bench.cpp", '#include "ullage/plan/model/step.h"\n', "model/step.h is not public in plan"),
]
# A line of the lists, its replacement, and the expected message.
WRONG_LISTS = [
    ("layer base:", "layer base: attic", "layer base may include attic, which is no layer"),
    ("layer base:", "layer base: report", "layer base may include itself in a circle"),
    ("  room model:", "  room model: search", "room model may include itself in a circle"),
    ("  room model:", "  room model: attic", "room model may include attic, which is no room"),
    ("  room model:", "  room model:\n  room attic:", "room attic of plan has no file"),
    ("  public planner.h", "  public planner.h words.h", "words.h need not be public in plan"),
    ("  public planner.h", "  public planner.h\n  hidden words.h", "not understood: hidden words.h"),
    ("  only card: session* start", "  only attic: start", "not understood: only attic"),
]


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
    for name, text, why in WRONG:
        code, said = check({**RIGHT, name: text})
        first = said.splitlines()[0]
        assert code == 1 and first.startswith(f"{name}:1:") and why in first, (name, said)
    for line, instead, why in WRONG_LISTS:
        assert line + "\n" in LAYERS, line
        code, said = check({**RIGHT, WALLS: LAYERS.replace(line + "\n", instead + "\n", 1)})
        assert code == 1 and any(one.startswith(f"{WALLS}:") and why in one for one in said.splitlines()), (line, said)
    gone = {name: text for name, text in RIGHT.items() if name != "src/ullage/plan/planner.h"}
    code, said = check(gone)
    assert code == 1 and "planner.h is public in plan and does not exist" in said, said
    for files in ({}, {WALLS: LAYERS}):
        code, said = check(files)
        assert code == 1, "an empty tree is no right tree"
    print(f"{len(RIGHT)} right files, {len(WRONG)} wrong ones found, {len(WRONG_LISTS) + 1} wrong lists")


if __name__ == "__main__":
    main()
