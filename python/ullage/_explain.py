# SPDX-License-Identifier: Apache-2.0
"""The command's `explain`, for a program or a notebook that has the failure at hand."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
import traceback

from ullage._command import answer


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why memory ran out, who held it, and what to do. A notebook shows it as the page with the timeline."""
    text: str
    """As the command prints it."""
    data: dict
    """The same for programs: the JSON of docs/cli.md."""
    page: str
    """The same as one HTML page that needs nothing else."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Explanation: {self.text.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        # Of a page of its own, so that its style and scripts stay in it.
        quoted = self.page.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width: 100%; height: 40em; border: 0"></iframe>'


def explain(failure: str | os.PathLike[str] | BaseException) -> Explanation:
    """Explains an out-of-memory error.

    failure: the exception, or the path of what `ullage explain` reads: a log, a snapshot, a trace, a printed summary.
    Raises ValueError, with the reason, for what cannot be read or is a text with neither an error nor a table, and
    FileNotFoundError where the command `ullage` is neither beside this Python nor on PATH.
    """
    words = _words(failure) if isinstance(failure, BaseException) else None
    source = "-" if words is not None else os.fspath(failure)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        text = answer("explain", source, "--html", str(page), given=words)
        return Explanation(text, json.loads(answer("explain", source, "--json", given=words)), page.read_text())


def _words(failure: BaseException | None) -> str:
    """Of the exception and those behind it; no lines of source, which may hold an error's words as well."""
    words = ""
    while failure is not None:
        words += "".join(traceback.format_exception_only(failure))
        failure = failure.__cause__ or failure.__context__
    return words
