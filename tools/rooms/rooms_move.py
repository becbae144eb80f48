#!/usr/bin/env python3
"""Moves the files of plan, read, runtime, report and trace into rooms, and rewrites all that names their paths.

usage: rooms_move.py ROOT    (a checkout; changes are left in the work tree, moves in the index, nothing is committed)

Run again it changes nothing, unless a merge brought files or includes with the old paths: then these are moved too.
A file that is in no list below goes by the prefixes in RULES, else it stays at its layer's top; both are said.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from house_format import format_changed  # noqa: E402

BASE = "1d21f04"  # what the READMEs and check_layers.py beside this script were written against

# Stems of the files of each room. A file that is in none, and that no rule below fits, is a central one: at the top.
ROOMS = {
    "plan": {
        "model": "arguments plan remakings rerun room schedule site_key stands_on step step_builder step_figures"
                 " step_of_take step_range levers indices ids",
        "problem": "emission floor likeness moved_storages problem problem_builder problem_positions remaking_ways"
                   " step_facts timeline",
        "search": "ahead annealing baselines greedy lever_uses moves planner policies search solver",
        "verify": "verifier verifier_actions verifier_machine verifier_pool verifier_words",
        "bound": "bound bound_columns bound_program bound_rows clp linear_program no_bound spans",
        "file": "plan_file plan_file_checks plan_file_reader plan_file_words",
    },
    "read": {
        "file": "content_kind file_content gzip pickle_text printable",
        "pickle": "pickle pickle_bytes pickle_containers pickle_globals pickle_objects pickle_opcodes pickle_parser"
                  " pickle_refusal",
        "snapshot": "snapshot snapshot_checks snapshot_events snapshot_fields snapshot_segments snapshot_settings"
                    " snapshot_stacks",
        "log": "log log_lines log_prefix log_traceback log_triggers memory_summary message message_clauses"
               " message_forms message_pattern message_text",
        "profile": "profile profile_device profile_events profile_numbers profile_parser profile_stacks"
                   " profile_storages",
        "weights": "checkpoint_pickle checkpoint_storage dtype safetensors_header weight_tensor weights"
                   " weights_formats weights_legacy weights_match weights_safetensors weights_zip zip_archive",
    },
    "runtime": {
        "ops": "autograd_state heap_scratch interceptor kept_generator kernel_facts list_ops op_call op_info op_name"
               " saved_tensors taped_op torch_compat vector_math",
        "pool": "budgeted_device card_work charges fault_handler library_pages pool storage_marks stream_order watch",
        "plan": "plan_figures plan_follower plan_program planning tape",
        "card": "card_device card_seam cuda_allocator cuda_allocator_stub",
        "python": "python_line python_process",
        "record": "op_uses recorder rehearsal_sizes",
    },
    "report": {
        "html": "html_cards html_ops html_page html_page_text html_plan html_plan_curve html_plan_timeline"
                " html_ranges html_samples html_strips html_text html_timeline html_timeline_json page",
        "terminal": "diagnosis_terminal plan_terminal prediction_terminal run_summary terminal_bar terminal_sections"
                    " terminal_text",
        "convert": "chrome_trace convert convert_memory_viz convert_perfetto event_axis perfetto_ops pickle_writer"
                   " rows take_recording",
        "json": "diagnosis_json plan_json prediction_json run_json",
    },
    "trace": {
        "recording": "inconsistencies memory_summary out_of_memory reconstruct recording stacks trace",
        "meaning": "annotated growth levels lifetimes owner_names owner_rules owners period phases rarest_call steps",
        "take": "optimizer_calls step_finder take take_categories take_index take_meaning take_names take_phases"
                " take_steps",
        "file": "event_log file_json file_parts file_tables gap_part id_table interned lost_events packed"
                " packed_events packed_take take_reader take_reader_gap take_writer trace_file",
    },
}
# Central files: they stay at their layer's top.
TOP = {
    "plan": "fit",
    "read": "input",
    "runtime": "c_api card_session following paging planned_paging runtime session session_figures start",
    "report": "command_text diagnosis_report input_history json_values plan_beside plan_report plan_words prediction_report"
              " run_report",
    "trace": "input",
}
# Where a file goes that is in no list: by the first prefix or suffix that fits.
RULES = {
    "plan": [("verifier_*", "verify"), ("plan_file_*", "file"), ("bound_*", "bound"), ("problem_*", "problem"),
             ("step_*", "model")],
    "read": [(f"{room}_*", room) for room in ("pickle", "snapshot", "log", "profile", "weights")]
            + [("message_*", "log")],
    "runtime": [("card_*", "card"), ("python_*", "python"), ("plan_*", "plan"), ("op_*", "ops"), ("pool_*", "pool")],
    "report": [("html_*", "html"), ("terminal_*", "terminal"), ("convert_*", "convert"), ("*_json", "json"),
               ("*_terminal", "terminal")],
    "trace": [("take_reader*", "file"), ("packed_*", "file"), ("file_*", "file"), ("take_*", "take"),
              ("owner_*", "meaning")],
}
# Files that are called otherwise from now on, by layer: what it was, what it is.
NAMES = {"read": {"pickle_text": "printable"}}
# Tests that say more than one room does, or whose name is not that of what they test: the room, or "" for the top.
TESTS = {
    "plan": {"random": "", "fit": "", "levers": "model", "planner": "search", "plan_file": "file", "rerun": "model"},
    "trace": {"real_snapshots": "", "event_log_gap": "file"},
    "report": {"take_report": "", "prediction": "", "plan_report": ""},
    "runtime": {},
    "read": {},
}
# Headers of less than 30 lines with one user, which other branches were editing: they go into it.
FOLDED = [
    "src/ullage/plan/random.h",
    "src/ullage/store/remaker.h",
]
# Sentences that the move makes wrong: file, what it says, what it is to say.
SENTENCES = [
    ("CONTRIBUTING.md", "`tests/` mirrors the tree. Namespace = folder.",
     "`tests/` mirrors the tree. Namespace = layer: what is in `plan/search` is `ullage::plan`. Rooms inside a layer, and the headers that other\n"
     "layers may include, stand in [src/ullage/layers.txt](src/ullage/layers.txt); `tools/check_layers.py` holds the tree to it."),
    ("src/ullage/README.md", "An arrow means \"may include\"; so may everything behind it. `tools/check_layers.py` (ctest `layering`) holds the tree to it.",
     "An arrow means \"may include\"; so may everything behind it. [layers.txt](layers.txt) has the arrows, those between the rooms inside a layer,\n"
     "and the headers of each layer that others may include; `tools/check_layers.py` (ctest `layering`) holds the tree to it."),
    ("src/ullage/report/CMakeLists.txt", "${CMAKE_CURRENT_SOURCE_DIR}/page\"", "${CMAKE_CURRENT_SOURCE_DIR}/html/page\""),
    ("src/ullage/report/CMakeLists.txt", "are files of their own, in page/,", "are files of their own, in html/page/,"),
]
TEXT = {".h", ".cpp", ".cc", ".cu", ".cuh", ".hpp", ".in", ".txt", ".cmake", ".md", ".py", ".sh", ".js", ".css", ".toml",
        ".yml", ".yaml", ""}
SOURCES = (".h", ".cpp", ".cc", ".cu", ".cuh")


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


class House:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = git(self.root, "ls-files").splitlines()
        self.to = {}  # a tracked file's path, and where it goes; also of those that went there before
        self.said = []
        self.moved = 0

    # ---- where each file goes

    def room_of(self, layer, stem):
        for room, stems in ROOMS[layer].items():
            if stem in stems.split():
                return room
        if stem in TOP[layer].split():
            return ""
        for pattern, room in RULES[layer]:
            if pathlib.PurePath(stem).match(pattern):
                self.said.append(f"{layer}/{stem}: in no list, placed in {room}/ by {pattern}")
                return room
        self.said.append(f"{layer}/{stem}: in no list, left at the top")
        return ""

    def room_of_test(self, layer, name):
        stem = name.removesuffix("_test")
        if stem in TESTS[layer]:
            return TESTS[layer][stem]
        for end in range(len(stem), 0, -1):  # the longest name of a source that the test's begins with
            if end == len(stem) or stem[end] == "_":
                for room, stems in ROOMS[layer].items():
                    if stem[:end] in stems.split():
                        return room
                if stem[:end] in TOP[layer].split():
                    return ""
        self.said.append(f"tests/{layer}/{name}: tests no file of one name, left at the top")
        return ""

    def plan_moves(self):
        for layer in ROOMS:
            stems = {}  # each asked about once, so that what is said is said once
            for name in self.files:
                parts = pathlib.PurePath(name).parts
                if parts[:3] == ("src", "ullage", layer) and len(parts) > 3:
                    base = parts[3]
                    if base in ("CMakeLists.txt", "README.md"):
                        continue
                    if base in ROOMS[layer]:  # is there already: its old path may still be named
                        old = layer_path("src/ullage/" + layer, self.old_name(layer, parts[4]), parts[5:])
                        if old not in self.files and parts[4] != "README.md":
                            self.to[old] = name
                        continue
                    stem, dot, ends = base.partition(".")
                    if stem not in stems:
                        stems[stem] = self.room_of(layer, stem)
                    new = NAMES.get(layer, {}).get(stem, stem) + dot + ends
                    if stems[stem]:
                        self.to[name] = layer_path(f"src/ullage/{layer}/{stems[stem]}", new, parts[4:])
                elif parts[:2] == ("tests", layer) and parts[-1].endswith("_test.cpp"):
                    if len(parts) == 3:
                        room = self.room_of_test(layer, parts[2][:-len(".cpp")])
                        if room:
                            self.to[name] = f"tests/{layer}/{room}/{parts[2]}"
                    elif len(parts) == 4:
                        self.to[f"tests/{layer}/{parts[3]}"] = name

    @staticmethod
    def old_name(layer, base):
        stem, dot, ends = base.partition(".")
        before = {new: old for old, new in NAMES.get(layer, {}).items()}
        return before.get(stem, stem) + dot + ends

    # ---- moving

    def move(self):
        for old, new in sorted(self.to.items()):
            if old in self.files:
                (self.root / new).parent.mkdir(parents=True, exist_ok=True)
                git(self.root, "mv", old, new)
                self.moved += 1
                self.come_from[new] = old

    # ---- headers with one user that go into it

    def fold(self):
        for header in FOLDED:
            there, name = self.root / header, header.removeprefix("src/")
            if not there.is_file():
                continue
            users = [each for each in self.files if each.endswith(SOURCES) and (self.root / each).is_file()
                     and f'#include "{name}"' in (self.root / each).read_text(encoding="utf-8")]
            if len(users) != 1 or not users[0].endswith(".h"):
                self.said.append(f"{header}: not folded, these include it: {' '.join(users)}")
                continue
            user, into = users[0], self.root / users[0]
            text, target = there.read_text(encoding="utf-8"), into.read_text(encoding="utf-8")
            opens = re.search(r"^namespace [\w:]+ \{\n", text, re.M)
            body = text[opens.end():text.rindex("}  // namespace")].strip("\n")
            about = re.search(r"#pragma once\n\n((?://.*\n)+)", text)
            lines = target.split("\n")
            at = lines.index(opens.group(0).rstrip("\n"))
            lines[at + 1:at + 1] = ["", *(about.group(1).rstrip("\n").split("\n") if about else []), *body.split("\n")]
            lines.remove(f'#include "{name}"')
            mine = [line for line in text.split("\n") if line.startswith("#include") and line not in lines]
            for line in mine:  # behind an include of the same kind that comes before it
                kind = '#include "ullage' if '"' in line else "#include <c"
                same = [i for i, other in enumerate(lines) if other.startswith(kind)]
                before = [i for i in same if lines[i] < line]
                if not same:
                    self.said.append(f"{user}: put in by hand: {line}")
                    continue
                lines.insert(before[-1] + 1 if before else same[0], line)
            into.write_text("\n".join(lines), encoding="utf-8")
            git(self.root, "rm", "-qf", header)
            page = into.parent / "README.md"
            page.write_text(page.read_text(encoding="utf-8").replace(f"`{there.name}`", f"`{into.name}`"), encoding="utf-8")
            build = into.parent / "CMakeLists.txt"
            listed = build.read_text(encoding="utf-8")
            build.write_text(re.sub(rf"\s{re.escape(there.name)}(?=\s)", "", listed), encoding="utf-8")
        self.files = git(self.root, "ls-files").splitlines()

    # ---- texts

    def rewrite(self):
        self.files = git(self.root, "ls-files").splitlines()
        spelled = {}
        for old, new in self.to.items():
            if old.startswith("src/ullage/"):
                spelled[old[len("src/ullage/"):]] = new[len("src/ullage/"):]
            else:
                spelled[old] = new
        if not spelled:
            return
        # plan/step.h, also behind ullage/, src/ullage/ or another path to it; longer names first.
        any_of = "|".join(re.escape(one) for one in sorted(spelled, key=lambda one: (-len(one), one)))
        paths = re.compile(rf"(?<![\w.-])(?P<name>{any_of})(?![\w/-])(?!\.\w)")
        for name in self.files:
            path = self.root / name
            if path.suffix not in TEXT or name.startswith("tests/data/") or path.is_symlink() or not path.is_file():
                continue
            if name in ("tests/tools/test_check_layers.py", "tools/check_layers.py"):
                continue  # its trees are made up
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            new = self.rewritten(name, text, paths, spelled)
            if new != text:
                path.write_text(new, encoding="utf-8")

    def rewritten(self, name, text, paths, spelled):
        lines = []
        is_source = name.endswith(SOURCES)
        for line in text.split("\n"):
            if is_source and re.match(r'\s*#\s*include\s*"(?!ullage/)', line):
                lines.append(self.relative_include(name, line))
            else:
                lines.append(paths.sub(lambda m: self.path_in(line, m, spelled), line))
        if is_source:
            lines = filled_comments(sorted_includes(lines), set(text.split("\n")))
        text = "\n".join(lines)
        parts = pathlib.PurePath(name).parts
        if parts[-1] == "CMakeLists.txt":
            if parts[:2] == ("src", "ullage") and len(parts) == 4 and parts[2] in ROOMS:
                text = self.source_lists(text, f"src/ullage/{parts[2]}/")
            elif parts[0] == "tests" and len(parts) == 3 and parts[1] in ROOMS:
                text = self.source_lists(text, f"tests/{parts[1]}/")
        return text

    @staticmethod
    def path_in(line, match, spelled):
        # Behind a folder of somebody else's (torch/_inductor/runtime/...) it is another file.
        before = re.search(r"([\w${}.-]+)/$", line[:match.start()])
        if before and before.group(1) not in ("ullage", "..", "}", "${PROJECT_SOURCE_DIR}"):
            return match.group(0)
        return spelled[match.group("name")]

    # A test's helpers stay at the top of its folder; tests/ is on the path of includes.
    def relative_include(self, name, line):
        match = re.match(r'(\s*#\s*include\s*")([^"]+)(".*)$', line)
        old_place = self.come_from.get(name)
        if not match or old_place is None or not name.startswith("tests/"):
            return line
        target = os.path.normpath(os.path.join(os.path.dirname(old_place), match.group(2)))
        if target not in self.files:
            return line
        return match.group(1) + target[len("tests/"):] + match.group(3)

    def source_lists(self, text, folder):
        there = {old[len(folder):]: new[len(folder):] for old, new in self.to.items() if old.startswith(folder)}
        if not there:
            return text
        any_of = "|".join(re.escape(one) for one in sorted(there, key=lambda one: (-len(one), one)))
        text = re.sub(rf"(?<![\w/.-])({any_of})(?![\w/-])(?!\.\w)", lambda m: there[m.group(1)], text)
        return re.sub(r"^( *)(SOURCES|HEADERS)\s+((?:[^\s()#]+\s+)*?[^\s()#]+)(?=\s+[A-Z_]+\s|\s*\))", by_room, text, flags=re.M)

    def say_sentences(self):
        for name, old, new in SENTENCES:
            path = self.root / name
            if not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            if new in text:
                continue
            if old not in text:
                self.said.append(f"{name}: does not say {old!r} any more; say by hand: {new!r}")
                continue
            path.write_text(text.replace(old, new), encoding="utf-8")

    # ---- what is placed whole

    def place(self):
        for source in (HERE / "rooms_files", HERE / "rooms_readmes"):
            for path in sorted(source.rglob("*")):
                if not path.is_file():
                    continue
                name = str(path.relative_to(source))
                target = self.root / name
                if target.exists() and self.moved == 0:
                    continue  # the second run: what was placed may have been edited since
                changed = git(self.root, "log", "--oneline", f"{BASE}..HEAD", "--", name) if target.exists() else ""
                if changed:
                    self.said.append(f"{name}: replaced, but it was changed since {BASE}; look at: git diff {BASE} HEAD -- {name}")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                git(self.root, "add", name)
                if name == "src/ullage/layers.txt":
                    self.public_lists(target)

    # Writes what is included from outside today into the lists of public headers.
    def public_lists(self, table):
        sys.path.insert(0, str(HERE / "rooms_files/tools"))
        sys.dont_write_bytecode = True
        import check_layers
        walls = check_layers.read_walls(table)
        used = check_layers.House(self.root, walls).included_from_outside()
        lines = []
        for line in table.read_text(encoding="utf-8").splitlines():
            lines.append(line)
            if (match := re.match(r"layer (\w+):", line)) and used.get(match.group(1)):
                out = "  public"
                for header in sorted(used[match.group(1)], key=room_first):
                    if len(out) + 1 + len(header) > 120:
                        lines.append(out)
                        out = "  public"
                    out += " " + header
                lines.append(out)
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self):
        self.come_from = {}
        self.fold()
        self.plan_moves()
        self.move()
        self.rewrite()
        self.say_sentences()
        self.place()
        format_changed(self.root)
        for line in self.said:
            print(line)
        print(f"{self.moved} files moved")


def layer_path(*parts):
    flat = []
    for part in parts:
        flat += [part] if isinstance(part, str) else list(part)
    return "/".join(flat)


def room_first(name):
    head, _, tail = name.rpartition("/")
    return head, tail


# One list of CMake, a paragraph for each room.
def by_room(match):
    indent, word, names = match.group(1), match.group(2), sorted(match.group(3).split(), key=room_first)
    line = f"{indent}{word} " + " ".join(names)
    if len(names) < 8 and len(line) <= 120:
        return line
    lines, room = [], None
    for name in names:
        head = name.rpartition("/")[0]
        if head != room or len(lines[-1]) + 1 + len(name) > 120:
            lines.append(f"{indent}  {name}")
        else:
            lines[-1] += " " + name
        room = head
    return f"{indent}{word}\n" + "\n".join(lines)


# Includes of the house stand in the order of their paths, within each block between blank lines.
def sorted_includes(lines):
    out, block = [], []
    for line in [*lines, None]:
        if line is not None and line.startswith('#include "ullage/'):
            block.append(line)
            continue
        out += sorted(block)
        block = []
        if line is not None:
            out.append(line)
    return out


# Comment lines that became longer than 120 columns: what is too long goes to the next line of the sentence.
def filled_comments(lines, before):
    out, i = [], 0
    while i < len(lines):
        line = lines[i]
        i += 1
        match = re.match(r"(\s*// )\S", line)
        if len(line) <= 120 or line in before or not match:
            out.append(line)
            continue
        words, lead = line[len(match.group(1)):].split(" "), match.group(1)
        while i < len(lines) and re.match(re.escape(lead) + r"\S", lines[i]):
            words += lines[i][len(lead):].split(" ")
            i += 1
        line = lead.rstrip()
        for word in words:
            if len(line) + 1 + len(word) > 120:
                out.append(line)
                line = lead.rstrip()
            line += " " + word
        out.append(line)
    return out


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    House(sys.argv[1]).run()
