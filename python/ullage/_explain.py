# SPDX-License-Identifier: Apache-2.0
"""`ullage explain` for a program or a notebook that has caught the error."""
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
    """Why memory ran out, what held it, and what to do. A notebook shows it as the HTML page with the timeline."""
    text: str
    """The text that the command prints."""
    data: dict
    """The same for programs: the JSON of docs/cli.md."""
    page: str
    """The same as one self-contained HTML page."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Explanation: {self.text.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        # An iframe, so that the page's style and scripts do not affect the notebook.
        quoted = self.page.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width: 100%; height: 40em; border: 0"></iframe>'


def explain(failure: str | os.PathLike[str] | BaseException) -> Explanation:
    """Explains an out-of-memory error.

    failure: the exception, or the path of a file that `ullage explain` reads: a log, a snapshot, a trace, a printed
    summary. Raises ValueError, with the reason, if the file cannot be read or is a text with neither an error nor a
    table. Raises FileNotFoundError if the command `ullage` is neither beside this Python nor on PATH.
    """
    words = _words(failure) if isinstance(failure, BaseException) else None
    source = "-" if words is not None else os.fspath(failure)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        text = answer("explain", source, "--html", str(page), given=words)
        return Explanation(text, json.loads(answer("explain", source, "--json", given=words)), page.read_text())


def _words(failure: BaseException | None) -> str:
    """Returns the messages of the exception and of its causes, without source lines, which may contain an error's words
    too."""
    words = ""
    while failure is not None:
        words += "".join(traceback.format_exception_only(failure))
        failure = failure.__cause__ or failure.__context__
    return words
