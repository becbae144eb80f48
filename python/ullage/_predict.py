# SPDX-License-Identifier: Apache-2.0
"""`ullage predict` for a function instead of a program."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

from ullage import _rehearse
from ullage._command import answer


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The memory that a function will need at a size at which it was not run."""
    text: str
    """The text that the command prints."""
    data: dict
    """The same for programs: the JSON of docs/cli.md."""

    @property
    def process_peak(self) -> int:
        """Peak resident bytes of the process, as the operating system counts them."""
        return self.data["process_peak_bytes"]

    @property
    def fits(self) -> bool | None:
        """Whether that is at most the given `memory`; None if none was given."""
        return self.data["fits"]

    def __str__(self) -> str:
        return self.text


def predict(function: Callable[..., object], *, at: Mapping[str, int], vary: Mapping[str, Sequence[int] | None] | None = None,
            memory: int | str | None = None, here: bool = False) -> Prediction:
    """Predicts the memory of function(**at) from a few of its steps at small sizes.

        def train(batch): ...
        ullage.predict(train, at={"batch": 64}, vary={"batch": [2, 3, 4]}).process_peak

    function: at the top level of a module or a script. It is called with the names in `at`, in separate processes, and
        ended at the border of its third step. A script is run again there to its end under the name
        "__ullage_rehearsal__", so code for its normal start belongs behind `if __name__ == "__main__":`.
    at: one or two sizes to predict.
    vary: the small sizes to try for each name, at least three in ascending order; None: Ullage chooses.
    memory: if given, the result also says whether that many bytes suffice, and the largest sizes that fit.
    here: the processes run in this working folder; otherwise in an empty one that is removed afterwards.

    Progress goes to stderr. Raises ValueError if no other process can find the function. Raises RuntimeError with the
    command's reason if the function failed or nothing can be predicted for it.
    """
    small = {name: None for name in at} if vary is None else vary
    options = [word for name, sizes in small.items()
               for word in ("--vary", name if sizes is None else f"{name}={','.join(map(str, sizes))}")]
    options += [word for name, size in at.items() for word in ("--at", f"{name}={size}")]
    budget = [] if memory is None else ["--memory", str(memory)]
    words = [sys.executable, _rehearse.__file__, *_where(function), *(f"{name}={{{name}}}" for name in at)]
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
    with tempfile.TemporaryDirectory() as folder:
        takes = str(pathlib.Path(folder, "takes.ullage"))
        data = answer("predict", "--json", "--keep", takes, *options, *budget, *(["--here"] if here else []), "--", *words,
                      env={**os.environ, "PYTHONPATH": path}, stderr=None)
        told = json.loads(data)
        # If the prediction was measured at that very size, its own text says so; the takes alone would only say why
        # they predict nothing.
        text = _measured(told) if told["measured"] else answer("predict", takes, *budget)
    return Prediction(text, told)


def _where(function: Callable[..., object]) -> tuple[str, str]:
    """Returns the module's name or the script's file, and the function's name in it."""
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or getattr(module, name, None) is not function:
        raise ValueError(f"{function!r} is not a function at the top level of a module or a script, so no other process can find it; define it there")
    if module.__name__ != "__main__":
        return module.__name__, name
    file = getattr(module, "__file__", None)
    if file is None:
        raise ValueError(f"{name}() is defined in no file, so no other process can find it; put it into a module and import it from there")
    return os.path.abspath(file), name


def _measured(told: dict) -> str:
    sizes = ", ".join(f"{name} {size}" for name, size in told["at"].items())
    return f"{told['process_peak_bytes'] / 2 ** 20:.2f} MiB at {sizes}, measured by a run at that size: {told['why']}\n"
