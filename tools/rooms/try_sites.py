#!/usr/bin/env python3
"""Rewrites hand-written `if (!x) return x.error();` to ULLAGE_TRY and ULLAGE_TRY_VALUE (ullage/base/result.h).

usage: try_sites.py FOLDER...     rewrites *.cpp and *.h below each folder in place, then formats what changed

Sites whose result is used as a result afterwards (captured, returned whole, asked again) are left and listed.
Running it twice changes nothing more.
"""
import pathlib
import re
import shutil
import subprocess
import sys

KEYWORDS = ("if", "while", "switch", "for", "return")
PAIRS = {")": "(", "]": "[", "}": "{"}


def masked(text):
    """The text with the insides of comments, strings and characters blanked; same length."""
    out, i = list(text), 0
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\\ ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'', re.S)
    for found in token.finditer(text):
        for at in range(found.start(), found.end()):
            if out[at] != "\n":
                out[at] = " "
    return "".join(out)


def balanced(code):
    stack = []
    for c in code:
        if c in "([{":
            stack.append(c)
        elif c in ")]}":
            if not stack or stack.pop() != PAIRS[c]:
                return False
        elif c == ";" and not stack:
            return False
    return not stack


def end_of_block(code, at):
    depth = 0
    for i in range(at, len(code)):
        if code[i] == "{":
            depth += 1
        elif code[i] == "}":
            if depth == 0:
                return i
            depth -= 1
    return len(code)


def uses(code, name):
    """Places of `name` as a variable of its own: not a member, not a label of an initialiser."""
    for found in re.finditer(r"(?<![\w.:])(?<!->)" + name + r"\b(?!::)", code):
        yield found.start()


def rewritten_uses(text, code, name):
    """The rest of the block with the result's value for the result; None where it is used as a result."""
    edits = []  # (begin, end, new)
    for at in uses(code, name):
        end = at + len(name)
        if code[end:end + 2] == "->":  # also behind a `*`, which is then the member's
            edits.append((at, end + 2, name + "."))
        elif code[end:end + 8] == ".value()":
            edits.append((at, end + 8, name))
        elif code[at - 1] == "*":
            begin = at - 1
            after = code[end:end + 1]
            before = code[begin - 1]
            word = re.search(r"(\w+)\s*$", code[:begin - 1])
            wraps = before == "(" and after == ")"
            called = code[begin - 2].isalnum() or code[begin - 2] in "_>)]"
            if wraps and not called and not (word and word.group(1) in KEYWORDS):
                edits.append((begin - 1, end + 1, name))
            else:
                edits.append((begin, end, name))
        elif re.match(r"\)\.value\(\)", code[end:]) and code[:at].endswith("std::move("):
            edits.append((end + 1, end + 9, ""))
        elif re.search(r"\breturn $", code[:at]) and code[end] == ";":
            pass  # the value becomes a result again
        else:
            return None
    for begin, end, new in reversed(edits):
        text = text[:begin] + new + text[end:]
    return re.sub(r"return std::move\(" + name + r"\);", "return " + name + ";", text)


STATUS = re.compile(r"if \((?:const )?(?:Status|auto|Result<[^;=]*?>) (\w+) = ((?:[^;])*?); !\1\)\s*return \1(?:\.error\(\))?;")
VALUE = re.compile(
    r"(?P<const>const )?(?P<type>Status|auto|Result<[^;={}]*>) (?P<name>\w+) = (?P<what>[^\n]*?(?:\n(?!\s*\n)[^\n]*?)*?);\n"
    r"\s*if \(!(?P=name)\) return (?P=name)(?P<error>\.error\(\))?;")


def statuses(text):
    at = 0
    while True:
        code = masked(text)
        found = STATUS.search(code, at)
        if not found:
            return text
        at = found.end()
        before = code[:found.start()].rstrip()
        if before.endswith("else") or code[found.end():].lstrip().startswith("else") or not balanced(found.group(2)):
            continue
        begin, end = found.span(2)
        new = "ULLAGE_TRY(" + text[begin:end] + ");"
        at = found.start() + len(new)
        text = text[:found.start()] + new + text[found.end():]


def values(text, path, left):
    at = 0
    while True:
        code = masked(text)
        found = VALUE.search(code, at)
        if not found:
            return text
        name, what = found["name"], found["what"]
        line = code.count("\n", 0, found.start()) + 1
        at = found.start() + 1
        starts = code[:found.start()].rstrip()[-1:] in ";{}:" or not code[:found.start()].strip()
        if not starts or not balanced(what) or (found["type"] != "Status" and found["type"] == "auto" and not found["error"]):
            continue
        begin, end = found.span("what")
        expression = text[begin:end]
        rest_end = end_of_block(code, found.end())
        rest = rewritten_uses(text[found.end():rest_end], code[found.end():rest_end], name)
        unused = not any(True for _ in uses(code[found.end():rest_end], name))
        if unused:
            new = "ULLAGE_TRY(" + expression + ");"
        elif rest is None or found["type"] == "Status":
            left.append(f"{path}:{line}: {name} is used as a result")
            continue
        else:
            kind = "auto" if found["type"] == "auto" else found["type"][len("Result<"):-1]
            if depth_comma(kind):
                kind = "auto"
            # A constant could not be moved out of.
            constant = found["const"] or ""
            if re.search(r"return " + name + ";", rest):
                constant = ""
            new = f"ULLAGE_TRY_VALUE({constant}{kind} {name}, {expression});"
        tail = rest if not unused else text[found.end():rest_end]
        at = found.start() + len(new)
        text = text[:found.start()] + new + tail + text[rest_end:]


ASSIGNED = re.compile(r"ULLAGE_TRY_VALUE\((?:const )?[^,()]*?\b(?P<name>\w+), (?P<what>[^;]*?)\);\n\s*"
                      r"(?P<to>[A-Za-z_][\w.]*(?:->[\w.]+)*) = (?:std::move\()?(?P=name)\)?;")


def assignments(text):
    """A value that is only wanted elsewhere is put there at once."""
    at = 0
    while True:
        code = masked(text)
        found = ASSIGNED.search(code, at)
        if not found:
            return text
        at = found.start() + 1
        rest = code[found.end():end_of_block(code, found.end())]
        if not balanced(found["what"]) or any(True for _ in uses(rest, found["name"])):
            continue
        begin, end = found.span("what")
        new = f"ULLAGE_TRY_VALUE({found['to']}, {text[begin:end]});"
        text = text[:found.start()] + new + text[found.end():]


def depth_comma(kind):
    return "," in kind  # the preprocessor knows no angle brackets


def main(folders):
    if not folders:
        sys.exit(__doc__)
    changed, left = [], []
    for folder in folders:
        for path in sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix in (".cpp", ".h")):
            if path.name == "result.h":
                continue
            before = path.read_text()
            after = assignments(values(statuses(before), path, left))
            if after != before:
                path.write_text(after)
                changed.append(str(path))
    if changed and shutil.which("clang-format"):
        subprocess.run(["clang-format", "-i", *changed], check=True)
    print(f"{len(changed)} files changed")
    for one in left:
        print("left:", one)


if __name__ == "__main__":
    main(sys.argv[1:])
