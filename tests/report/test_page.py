#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the pages that `explain`, `plan` and `advise` write with --html in a real browser. What each shows equals the
JSON, it works, and it is readable.

usage: test_page.py ULLAGE WRITE_TRACE DATA OUT WRITE_ADVICE     DATA: tests/data; OUT: for pages and pictures of them
"""
import gzip
import json
import pathlib
import pickle
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402

ULLAGE, WRITE_TRACE, DATA, OUT = *sys.argv[1:3], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
WRITE_ADVICE = sys.argv[5]
CHART = "document.querySelector('.chart canvas')"
VIEW = f"return [+{CHART}.dataset.from, +{CHART}.dataset.to]"

MESSAGE = (
    "Epoch 3 <img src=x onerror=document.title=1> </script>\n"
    '  File "</script><script>document.title=1</script>.py", line 7, in forward\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.87 GiB. GPU 0 has a total capacity of 23.69 GiB of "
    "which 1.12 GiB is free. Process 4711 has 22.56 GiB memory in use. Of the allocated memory 17.00 GiB is allocated by "
    "PyTorch, and 4.94 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n")


def explain(file, *options):
    return subprocess.run([ULLAGE, "explain", str(file), *options], check=True, capture_output=True, text=True).stdout


class Page:
    """A page that was made from an input and opened, and the JSON of the same input."""

    def __init__(self, made_from, name):
        self.file = OUT / f"{name}.html"
        self.json = json.loads(explain(made_from, "--json", "--html", self.file))


def inputs():
    """Returns the small files that come with the tests; zipped ones are unzipped beside the pages."""
    found = sorted((DATA / "snapshots").glob("*.pickle")) + sorted((DATA / "profiles").glob("*.json*"))
    for file in sorted((DATA / "snapshots").glob("*.pickle.gz")):
        plain = OUT / file.stem
        plain.write_bytes(gzip.decompress(file.read_bytes()))
        found.append(plain)
    return found + [trace(kind) for kind in ("small", "three", "failed", "long")]


def trace(kind):
    file = OUT / f"{kind}.ullage"
    subprocess.run([WRITE_TRACE, kind, file], check=True)
    return file


class InTheBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.__exit__)  # also where the set-up fails
        cls.pages = {}
        for file in inputs():
            cls.pages[file.name] = Page(file, file.name)
        evil = OUT / "evil.log"
        evil.write_text(MESSAGE)
        cls.pages["message"] = Page(evil, "message")
        cls.history = next(page for name, page in cls.pages.items() if name.startswith("niuhuangxiaozi"))

    def open(self, page, width=1200, height=900, dark=False, touch=False):
        self.browser.look(width, height, dark, touch)
        self.browser.open(page.file)
        self.addCleanup(self.expect_quiet, page)

    def expect_quiet(self, page):
        self.assertEqual(self.browser.log("browser"), [], page.file.name)
        self.assertEqual(self.browser.requests(), [], page.file.name)

    def place(self, selector, share=0.5, high=0.5):
        """Returns a point of an element in the window, scrolled into sight."""
        return self.browser.run("""
            const e = document.querySelector(arguments[0]);
            e.scrollIntoView({block: "center"});
            const b = e.getBoundingClientRect();
            return [Math.round(b.left + arguments[1] * b.width), Math.round(b.top + arguments[2] * b.height)];
            """, selector, share, high)

    def move(self, *point):
        return {"type": "pointerMove", "duration": 0, "x": point[0], "y": point[1]}

    def click(self, selector, *share):
        self.browser.mouse(self.move(*self.place(selector, *share)), {"type": "pointerDown", "button": 0},
                           {"type": "pointerUp", "button": 0})

    def numbers(self, selector):
        """Returns the bytes of elements, as they stand in the page beside the text for people."""
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map((e) => +e.dataset.bytes)",
                                selector + "[data-bytes]")

    # ---- every page
    def test_totals_equal_the_json(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.open(page)
                self.assertEqual(self.browser.run("return document.querySelector('h1').textContent"),
                                 page.json["headline"])
                all_of = [page.json, *page.json["more"]]
                for css, key in ((".device", "bar"), (".peak", "peak")):
                    self.assertEqual(self.numbers(css), [one[key]["bytes"] for one in all_of if one[key]])
                if page.json["peak"] and not page.json["more"]:
                    self.assertEqual(self.numbers(".peak td"), [o["bytes"] for o in page.json["peak"]["owners"]])
                if page.json["bar"] and not page.json["more"]:
                    self.assertEqual(sum(self.numbers(".device b")), page.json["bar"]["bytes"])
                ids = "return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.id)"
                self.assertEqual(self.browser.run(ids, "article:first-of-type .causes .card")[:len(page.json["causes"])],
                                 [cause["id"] for cause in page.json["causes"]])
                self.expect_quiet(page)

    def test_no_scrolling_sideways_on_a_phone(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.open(page, 360, 740, touch=True)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 360)

    def test_pictures(self):
        for name in ("message", "small.ullage", "failed.ullage", *(n for n, p in self.pages.items() if p is self.history)):
            for look, size in {"desktop": (1200, 900), "phone": (360, 740), "dark": (1200, 900)}.items():
                self.open(self.pages[name], *size, dark=look == "dark", touch=look == "phone")
                if name != "message" and look == "desktop":
                    self.browser.mouse(self.move(*self.place(".chart canvas", 0.6, 0.7)))
                self.browser.shot(OUT / f"{name}-{look}.png")

    def test_text_of_a_file_is_never_markup(self):
        page = self.pages["message"]
        self.open(page)
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, script:not(:last-of-type)').length"), 0)
        self.assertEqual(self.browser.run("return document.title"), page.json["headline"])

    # ---- the timeline
    def test_the_instant_shown_first_is_the_one_of_the_diagnosis(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.open(page)
                shown = self.browser.run("""
                    return [...document.querySelectorAll('article')].map((article) => {
                      const bytes = [...article.querySelectorAll('.instant-owners td[data-bytes]')];
                      const instant = article.querySelector('.instant');
                      return instant && [+instant.dataset.live, bytes.reduce((sum, td) => sum + +td.dataset.bytes, 0)];
                    });""")
                for one, live in zip([page.json, *page.json["more"]], shown, strict=True):
                    if live and one["peak"]:
                        self.assertEqual(live, [one["peak"]["bytes"]] * 2, one["headline"])

    def test_the_wheel_zooms_and_all_resets(self):
        self.open(self.history)
        full = self.browser.run(VIEW)
        x, y = self.place(".chart canvas", 0.25)
        self.browser.wheel(x, y, -240)
        near = self.browser.run(VIEW)
        self.assertLess(near[1] - near[0], full[1] - full[0])
        # Zooming keeps the point below the pointer in place.
        below = [view[0] + 0.25 * (view[1] - view[0]) for view in (full, near)]
        self.assertAlmostEqual(below[0], below[1], delta=(full[1] - full[0]) / 200)
        self.click(".tools button:nth-of-type(3)")
        self.assertEqual(self.browser.run(VIEW), full)

    def test_dragging_zooms_into_the_stretch(self):
        self.open(self.history)
        full = self.browser.run(VIEW)
        start, end = self.place(".chart canvas", 0.4), self.place(".chart canvas", 0.6)
        self.browser.mouse(self.move(*start), {"type": "pointerDown", "button": 0}, self.move(*end),
                           {"type": "pointerUp", "button": 0})
        view = self.browser.run(VIEW)
        for at, share in zip(view, (0.4, 0.6)):
            self.assertAlmostEqual(at, full[0] + share * (full[1] - full[0]), delta=(full[1] - full[0]) / 100)

    def test_two_fingers_zoom(self):
        self.open(self.history, 360, 740, touch=True)
        full = self.browser.run(VIEW)
        y = self.place(".chart canvas")[1]
        fingers = []
        for name, start, end in (("one", 150, 60), ("two", 200, 300)):
            fingers.append({"type": "pointer", "id": name, "parameters": {"pointerType": "touch"}, "actions": [
                self.move(start, y), {"type": "pointerDown", "button": 0}, {**self.move(end, y), "duration": 100},
                {"type": "pointerUp", "button": 0}]})
        self.browser.act(*fingers)
        near = self.browser.run(VIEW)
        self.assertLess(near[1] - near[0], 0.5 * (full[1] - full[0]))

    def test_hovering_tells_the_owners_of_the_moment(self):
        self.open(self.history)
        for share in (0.1, 0.5, 0.9):
            self.browser.mouse(self.move(*self.place(".chart canvas", share)))
            read = self.browser.run("""
                const r = document.querySelector('.read');
                return [r.hidden, +r.dataset.live, +r.dataset.moment, r.querySelectorAll('tr').length, r.innerText]""")
            self.assertFalse(read[0])
            self.assertGreater(read[3], 0)
            self.assertIn("live", read[4])

    def test_a_click_shows_the_segments_of_that_moment(self):
        self.open(self.history)
        seen = set()
        for share in (0.05, 0.5, 0.95):
            self.click(".chart canvas", share)
            moment, live, reserved, segments = self.browser.run("""
                const d = document.querySelector('.instant').dataset;
                return [+d.moment, +d.live, +d.reserved, +d.segments]""")
            self.assertEqual(sum(self.numbers(".instant-owners td")), live)
            self.assertGreaterEqual(reserved, live)
            drawn = self.browser.run("""
                const b = document.querySelector('.pool').getBoundingClientRect();
                return b.width > 300 && b.height > 20""")
            self.assertEqual(drawn, segments > 0)
            seen.add((moment, live))
        self.assertEqual(len(seen), 3)
        self.click(".pool", 0.1, 0.1)
        self.assertIn("segment ", self.browser.run("return document.querySelector('.detail').innerText"))

    def test_reserved_bytes_are_the_segments_at_every_sample(self):
        self.open(self.history)
        wrong = self.browser.run("""
            const data = document.querySelector('script.timeline');
            const line = new Line(JSON.parse(data.textContent));
            const sum = (placed, moment) => line.presentAt(placed, moment).reduce((s, i) => s + placed.bytes[i], 0);
            const wrong = [];
            for (let i = 0; i < line.moments.length; i += 97) {
              const moment = line.moments[i];
              if (sum(line.ranges, moment) !== line.reserved[i]) wrong.push(["reserved", moment]);
              if (sum(line.storages, moment) !== line.live[i]) wrong.push(["live", moment]);
            }
            return wrong;""")
        self.assertEqual(wrong, [])

    # ---- tensors, stacks, events and the search, against the recording itself
    def recorded(self):
        """Returns the events of the history, as PyTorch wrote them."""
        with open(OUT / self.history.json["source"]["file"].rpartition("/")[2], "rb") as file:
            return next(events for events in pickle.load(file)["device_traces"] if events)

    def in_line(self, script, *arguments):
        """Runs a script that has the history as `line`."""
        return self.browser.run("const line = new Line(JSON.parse(document.querySelector('script.timeline').textContent));"
                                + script, *arguments)

    def test_bands_and_phases_are_named(self):
        self.open(self.history)
        bands, phases, columns, strips = self.in_line("""
            const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
            return [texts('.keys button'), texts('.keys .phase'),
              line.levels.map((column, c) => Math.max(...column) > 0 ? line.shortBandName(c) : '').filter((n) => n),
              line.stripNames()]""")
        self.assertEqual(bands, columns[::-1])
        self.assertEqual(phases, strips)
        self.assertIn("forward", phases)
        self.assertGreater(int(self.browser.run(f"return {CHART}.dataset.named")), 0)
        before = self.browser.run("return document.querySelector('.detail')?.isConnected ?? false")
        self.assertFalse(before)
        self.click(".keys li:nth-child(2) button")
        self.assertIn(columns[-2].split(": ")[1], self.browser.run("return document.querySelector('.detail').innerText"))
        self.assertGreater(self.browser.run("return document.querySelectorAll('.detail .frames li').length"), 0)

    def test_names_of_bands_do_not_cover_the_figures_of_the_scale(self):
        written = 0
        for name, page in self.pages.items():
            for width, touch in ((1200, False), (360, True)):
                with self.subTest(name, width=width):
                    self.open(page, width, 800, touch=touch)
                    for names, scale in self.browser.run("""
                            return [...document.querySelectorAll('.chart canvas')].map(({dataset}) =>
                              [JSON.parse(dataset.names), JSON.parse(dataset.scale)])"""):
                        written += len(names)
                        covered = [(one["text"], figure) for one in names for figure in scale
                                   if one["left"] < figure["right"] and abs(one["at"] - figure["at"]) < 12]
                        self.assertEqual(covered, [])
        self.assertGreater(written, 20)

    def test_bands_of_one_name_are_told_apart_by_their_category(self):
        self.open(self.pages["silmont2000_layout_d.pickle"])
        names = self.in_line("""
            line.owners.forEach((owner) => { owner.name = 'from before the history'; });
            return [...line.levels.keys()].map((c) => namesOf(line, c));""")
        self.assertGreater(len(names), 2)
        for one in names[:-1]:
            self.assertRegex(one[0], r"^[a-z ]+: from before the history$")

    def test_owners_of_one_category_have_colors_of_their_own(self):
        self.open(self.history)
        for dark in (False, True):
            colors = self.browser.run("return ownerColors(Array(16).fill({category: 'activations'}), arguments[0])", dark)
            self.assertEqual(len(set(colors)), 16)

    def test_without_a_history_the_moment_is_the_end(self):
        without = [page for page in self.pages.values() if "no history was recorded" in page.json["headline"]]
        self.assertGreater(len(without), 2)
        for page in without:
            self.open(page)
            self.assertEqual(self.browser.run("return document.querySelector('.moment').textContent"),
                             "At the end, when the file was written")

    def test_the_phase_of_a_moment_is_that_of_its_event(self):
        frames = [{"filename": "model.py", "line": 7, "name": "forward"},
                  {"filename": "torch/nn/modules/module.py", "line": 9, "name": "_call_impl"}]
        events = [{"action": "segment_alloc", "addr": 1 << 30, "size": 1 << 21, "stream": 0, "frames": frames},
                  {"action": "alloc", "addr": 1 << 30, "size": 1 << 20, "stream": 0, "frames": frames},
                  {"action": "oom", "size": 1 << 31, "device_free": 1 << 20, "stream": 0, "frames": frames}]
        file = OUT / "last.pickle"
        file.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
        page = Page(file, "last")
        self.assertEqual(page.json["place"]["phase"], "forward")
        self.open(page)
        self.assertEqual(self.browser.run("return document.querySelector('.moment').textContent"), "At event 2, forward")
        for page in self.history, self.pages["failed.ullage"]:
            self.open(page)
            wrong = self.in_line("""
                return [...Array(line.events).keys()].filter((event) =>
                  (line.strips.findLast(([from, to]) => from <= event && event < to)?.[2] ?? '') !==
                  line.phaseText({moment: event + 1}));""")
            self.assertEqual(wrong, [])

    def test_stacks_are_whole(self):
        self.open(self.history)
        recorded = self.recorded()
        seen = self.in_line("""
            return [...line.storages.from.keys()].filter((b) => line.storages.from[b] > 0).map((b) =>
              [line.storages.from[b] - 1, line.addressText(line.storages.at[b]), line.storages.bytes[b],
               line.framesOf(line.storages.stack[b])])""")
        self.assertGreater(len(seen), 100)
        for event, address, size, frames in seen:
            entry = recorded[event]
            self.assertEqual([entry["action"], hex(entry["addr"]), entry["size"]], ["alloc", address, size])
            self.assertEqual(frames, [f"{f['filename']}:{f['line']} {f['name']}" if f["line"] else f["name"]
                                      for f in entry["frames"]])

    def test_zoomed_in_each_tensor_is_a_shape_with_its_stack(self):
        self.open(self.history)
        x, y = self.place(".chart canvas", 0.5, 0.85)
        for _ in range(14):
            self.browser.wheel(x, y, -240)
        view = self.browser.run(VIEW)
        wanted = self.in_line("""return [...line.storages.from.keys()].filter((b) =>
            line.storages.from[b] < arguments[1] && line.storages.from[b] + line.storages.lasts[b] > arguments[0]).length""",
                              *view)
        self.assertEqual(int(self.browser.run(f"return {CHART}.dataset.shapes")), wanted)
        self.assertGreater(wanted, 0)
        self.browser.mouse(self.move(x, y))
        storage = int(self.browser.run("return document.querySelector('.read').dataset.storage"))
        self.assertGreaterEqual(storage, 0)
        self.click(".chart canvas", 0.5, 0.85)
        size, frames = self.in_line("return [sizeText(line.storages.bytes[arguments[0]]), "
                                    "line.framesOf(line.storages.stack[arguments[0]])]", storage)
        self.assertIn(f"tensor of {size}", self.browser.run("return document.querySelector('.detail').innerText"))
        shown = "return [...document.querySelectorAll('.detail .frames:last-of-type li')].map((e) => e.textContent)"
        self.assertEqual(self.browser.run(shown)[-len(frames):], frames)

    def test_events_around_a_moment_are_the_recorded_ones(self):
        self.open(self.history)
        recorded = self.recorded()
        signs = {"alloc": 1, "free_completed": -1, "segment_alloc": 1, "segment_free": -1}
        for share in (0.2, 0.6, 0.9):
            self.click(".chart canvas", share)
            moment = int(self.browser.run("return document.querySelector('.instant').dataset.moment"))
            shown = self.browser.run("""
                return [...document.querySelectorAll('.events tbody tr')].map((row) =>
                  [+row.cells[0].textContent, row.cells[1].textContent])""")
            wanted = []
            for event in range(max(0, moment - 13), min(len(recorded), moment + 12)):
                entry = recorded[event]
                if sign := signs.get(entry["action"]):
                    wanted.append((event, sign * entry["size"]))
            texts = self.browser.run("return arguments[0].map(([event, bytes]) => "
                                     "[event, (bytes < 0 ? '\\u2212' : '+') + sizeText(Math.abs(bytes))])", wanted)
            self.assertEqual(shown, texts)
        self.click(".events tbody tr:first-child button")
        self.assertEqual(int(self.browser.run("return document.querySelector('.instant').dataset.moment")), shown[0][0] + 1)

    def test_the_search_finds_every_tensor_with_the_text_in_its_stack(self):
        self.open(self.history)
        text = "softmax.py"
        live, most, hits, by_address = 0, 0, 0, {}
        for entry in self.recorded():
            if entry["action"] == "alloc" and any(text in frame["filename"] for frame in entry["frames"]):
                by_address[entry["addr"]] = entry["size"]
                hits += 1
                live += entry["size"]
                most = max(most, live)
            elif entry["action"] == "free_completed":
                live -= by_address.pop(entry["addr"], 0)
        self.assertGreater(hits, 0)
        self.click("input[type=search]")
        self.browser.key(*text)
        self.browser.run("return new Promise((done) => setTimeout(done, 400))")
        found = self.browser.run("return {...document.querySelector('.found').dataset}")
        self.assertEqual(found, {"hits": str(hits), "most": str(most)})
        self.assertEqual(self.browser.run("return document.querySelectorAll('.found tbody tr').length"), min(hits, 12))

    def test_the_segments_stand_beside_the_timeline(self):
        boxes = """return ['.history', '.instant'].map((s) => document.querySelector(s).getBoundingClientRect())
            .map((b) => [b.left, b.right, b.top, b.bottom])"""
        self.open(self.history)
        line, instant = self.browser.run(boxes)
        self.assertLess(line[1], instant[0])
        self.assertEqual(line[2], instant[2])
        self.open(self.history, 360, 740, touch=True)
        line, instant = self.browser.run(boxes)
        self.assertLess(line[3], instant[2])

    def test_keys(self):
        self.open(self.history)
        self.browser.run(f"{CHART}.focus()")
        full = self.browser.run(VIEW)
        self.browser.key("\ue010", "\ue012", "\ue007")  # End, ArrowLeft, Enter
        data = self.browser.run("return {...document.querySelector('.instant').dataset}")
        self.assertEqual(int(data["moment"]), full[1] - 2)
        self.browser.key("+")
        self.assertLess(self.browser.run(VIEW)[1] - self.browser.run(VIEW)[0], full[1] - full[0])
        self.browser.key("0", "p")
        self.assertEqual(self.browser.run(VIEW), full)
        at_peak = self.browser.run(f"return {CHART}.getAttribute('aria-valuenow')")
        self.assertEqual(int(at_peak), self.history.json["peak"]["event"] + 1)

    # ---- Ullage's own traces
    def test_of_a_trace_the_op_is_told_below_the_pointer_and_of_the_moment_chosen(self):
        page = self.pages["small.ullage"]
        self.open(page)
        place = page.json["place"]
        self.assertIn(place["op"], self.browser.run("return document.querySelector('.instant .op').innerText"))
        seen, chosen = set(), set()
        for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
            self.browser.mouse(self.move(*self.place(".chart canvas", share)))
            seen.add(self.browser.run("return document.querySelector('.read .op')?.innerText"))
            self.click(".chart canvas", share)
            chosen.add(self.browser.run("return document.querySelector('.instant .op').innerText"))
        # Between two ops none is running.
        self.assertTrue(any(op and op.startswith("aten::") for op in seen), seen)
        self.assertTrue(any("aten::" in op for op in chosen), chosen)

    def test_a_trace_has_no_reserved_bytes_and_no_segments(self):
        for name in ("small.ullage", "failed.ullage"):
            self.open(self.pages[name])
            self.browser.mouse(self.move(*self.place(".chart canvas", 0.5)))
            self.assertNotIn("reserved", self.browser.run("return document.body.innerText"))
            self.assertTrue(self.browser.run("return [...document.querySelectorAll('.pool')]"
                                             ".every((e) => e.offsetParent === null)"))

    def test_what_is_saved_adds_up(self):
        page = self.pages["failed.ullage"]
        self.open(page)
        self.assertEqual(self.numbers(".saved"), [page.json["saved"]["bytes"]])
        self.assertEqual(sum(self.numbers(".saved td")), page.json["saved"]["bytes"])
        self.assertEqual(self.numbers(".saved td"), [row["bytes"] for row in page.json["saved"]["by"]])

    def test_every_category_has_a_color_of_its_own(self):
        for dark in (False, True):
            self.open(self.pages["small.ullage"], dark=dark)
            colors = self.browser.run("""
                return [...document.querySelectorAll('.device .legend .dot')].map((e) => [e.className,
                  getComputedStyle(e).backgroundColor])""")
            self.assertTrue(any("c-buffers" in name for name, _ in colors))
            self.assertTrue(any("c-workspace" in name for name, _ in colors))
            self.assertEqual(len({color for _, color in colors}), len(colors), colors)

    # ---- plans
    def plan(self, name, *options):
        """Makes a page of `ullage plan`. Returns the JSON of the same plan."""
        page = Page.__new__(Page)
        page.file = OUT / f"{name}.html"
        words = [ULLAGE, "plan", OUT / "small.ullage", "--rate", "1GB", "--effort", "1", "--json", "--html", page.file,
                 *options]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 4), done.stderr)
        page.json = json.loads(done.stdout)
        return page

    def test_a_plan_has_the_timeline_before_and_after_side_by_side(self):
        page = self.plan("plan", "--memory", "300MiB", "--curve")
        self.open(page)
        charts, peaks, width = self.browser.run("""
            const charts = [...document.querySelectorAll('.pair canvas')].map((c) => c.getBoundingClientRect());
            return [charts.map((b) => [b.left, b.top]), [...document.querySelectorAll('.pair h3 b')].map(
              (b) => b.textContent), document.documentElement.scrollWidth]""")
        self.assertEqual(len(charts), 2)
        self.assertEqual(charts[0][1], charts[1][1])
        self.assertLess(charts[0][0], charts[1][0])
        self.assertEqual(len(set(peaks)), 2)
        self.assertLessEqual(width, 1200)
        self.assertEqual(sum(self.numbers(".device b")), page.json["memory_bytes"])
        self.assertEqual(self.numbers(".sites td"), [use["bytes"] for use in page.json["levers"]])
        self.assertEqual(self.browser.run("return document.querySelectorAll('svg circle').length"),
                         len([one for one in page.json["curve"] if one["outcome"] != "infeasible"]))
        self.expect_quiet(page)

    def test_pointing_at_a_plans_timeline_tells_the_op_in_both(self):
        page = self.plan("plan", "--memory", "300MiB")
        self.open(page)
        here = "return {...document.querySelector('.here').dataset}"
        peaks = self.browser.run("""
            const pair = JSON.parse(document.querySelector('script.plan-timeline').textContent);
            return [pair.plain, pair.planned].map((levels) => Math.max(...summed(levels)))""")
        self.assertEqual(peaks, [page.json["plain_peak_bytes"], page.json["peak_bytes"]])
        for chart in (1, 2):
            selector = f".pair > :nth-child({chart}) canvas"
            self.browser.mouse(self.move(*self.place(selector, 0.4)))
            seen = self.browser.run(here)
            self.assertGreater(int(seen["op"]), 0)
            self.browser.run(f"document.querySelector('{selector}').focus()")
            self.browser.key("p")
            seen = self.browser.run(here)
            self.assertEqual(int(seen["plain" if chart == 1 else "planned"]), peaks[chart - 1])
        before = self.browser.run("return [...document.querySelectorAll('.pair canvas')].map((c) => +c.dataset.to - c.dataset.from)")
        self.browser.wheel(*self.place(".pair canvas", 0.5), -240)
        after = self.browser.run("return [...document.querySelectorAll('.pair canvas')].map((c) => +c.dataset.to - c.dataset.from)")
        self.assertLess(after[0], before[0])
        self.assertEqual(after[0], after[1])  # both move together
        self.expect_quiet(page)

    def test_plans_are_readable_on_a_phone_and_in_the_dark(self):
        for name, options in {"plan": ("--memory", "300MiB", "--curve"), "no-plan": ("--memory", "170MiB"),
                              "fits": ("--memory", "1GiB"), "curve": ("--curve",)}.items():
            with self.subTest(name):
                page = self.plan(name, *options)
                self.open(page, 360, 740, touch=True)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 360)
                self.browser.shot(OUT / f"{name}-phone.png")
                self.open(page, dark=True)
                self.browser.shot(OUT / f"{name}-dark.png")
                charts = self.browser.run("return document.querySelectorAll('.timelines canvas').length")
                self.assertEqual(charts, 2 if name == "plan" else 1)
                self.expect_quiet(page)

    # ---- advice
    def advice(self):
        page = Page.__new__(Page)
        page.file = OUT / "advice.html"
        subprocess.run([WRITE_ADVICE, page.file], check=True)
        return page

    def test_pointing_at_the_curves_of_advice_compares_the_runs(self):
        page = self.advice()
        self.open(page)
        curves = self.browser.run("""
            const json = JSON.parse(document.querySelector('script.advice-timeline').textContent);
            return json.curves.map((c) => c.steps.map((s) => s.map((l) => [...summed(l)])))""")
        self.browser.mouse(self.move(*self.place(".chart canvas", 0.9)))
        part = int(self.browser.run("return document.querySelector('.here').dataset.part"))
        step, at = divmod(part, 300)
        self.assertEqual(step, 2)
        text = lambda n: self.browser.run("return sizeText(arguments[0])", n)  # noqa: E731
        cells = self.browser.run(
            "return [...document.querySelectorAll('.here tbody tr')].map((r) => [...r.cells].slice(1).map((c) => c.textContent))")
        self.assertEqual(cells, [[text(levels[step][kind][at]) for kind in (0, 1)] for levels in curves])
        self.assertEqual(len(cells), 4)
        self.browser.mouse(self.move(*self.place(".chart canvas", 0.1)))  # a plan is of the last step alone
        self.assertEqual(self.browser.run("return document.querySelectorAll('.here tbody tr')[2].cells[1].textContent"), "-")
        self.click(".keys li:nth-child(2) button")
        self.browser.mouse(self.move(*self.place(".chart canvas", 0.9)))
        self.assertEqual(self.browser.run("return document.querySelectorAll('.here tbody tr').length"), 3)
        self.browser.wheel(*self.place(".chart canvas", 0.5), -240)
        view = self.browser.run(VIEW)
        self.assertLess(view[1] - view[0], 900)

    def test_advice_is_readable_on_a_phone_and_in_the_dark(self):
        page = self.advice()
        for name, look in {"advice": {}, "advice-dark": {"dark": True}, "advice-phone": {"width": 360, "height": 740,
                           "touch": True}, "advice-phone-dark": {"width": 360, "height": 740, "touch": True, "dark": True}}.items():
            with self.subTest(name):
                self.open(page, **look)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), look.get("width", 1200))
                self.assertEqual(self.browser.run("return document.querySelectorAll('.advice tbody tr').length"), 5)
                colors = self.browser.run(
                    "return [...document.querySelectorAll('.keys .dot')].map((e) => getComputedStyle(e).backgroundColor)")
                self.assertEqual(len(set(colors)), 4)
                self.browser.shot(OUT / f"{name}.png")

    def test_a_long_trace_has_a_page_of_a_few_megabytes(self):
        page = self.pages["long.ullage"]
        self.assertLess(page.file.stat().st_size, 3 << 20)
        self.open(page)
        self.assertEqual(self.browser.run("return document.querySelectorAll('.chart canvas').length"), 1)

    def test_each_take_has_a_timeline(self):
        page = self.pages["three.ullage"]
        self.open(page)
        self.assertEqual(self.browser.run("return document.querySelectorAll('.chart canvas').length"), 3)
        self.assertEqual(len(page.json["more"]), 2)


if __name__ == "__main__":
    if not (browser.DRIVER and browser.CHROMIUM):
        print("skipped: no chromium and chromedriver; 'tools/setup browser' installs them")
        sys.exit(77)
    OUT.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=1)
