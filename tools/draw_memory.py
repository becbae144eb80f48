# SPDX-License-Identifier: Apache-2.0
"""Draws what two runs of one program held over their steps, plain beside budget: as a PNG, and as lines of a terminal.

Both drawings are made of the same columns, so they show the same. The PNG needs Pillow, the lines need nothing.

usage: draw_memory.py MEASURED.json OUT.png      draws again what tools/plain_beside_budget.py measured
"""
import dataclasses
import itertools
import json
import math
import pathlib
import sys

GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Curve:
    """One run. `points` are (steps done, resident bytes) in order of time. From `steps` to `steps` + 1 the result is
    saved."""
    points: list
    peak: int  # bytes, counted by the kernel; the points are only samples, so none is above it
    seconds: float


@dataclasses.dataclass(frozen=True)
class Measured:
    title: str
    steps: int
    budget: int  # bytes
    plain: Curve
    within: Curve

    def save(self, path: pathlib.Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self)) + "\n")

    @staticmethod
    def load(path: pathlib.Path) -> "Measured":
        told = json.loads(path.read_text())
        return Measured(**{**told, "plain": Curve(**told["plain"]), "within": Curve(**told["within"])})

    def top(self) -> int:
        return max(self.plain.peak, self.within.peak, self.budget)


@dataclasses.dataclass(frozen=True)
class Style:
    """What the terminal can show. `width` is in columns."""
    width: int = 80
    colours: bool = False
    unicode: bool = True


def gib(size: int) -> str:
    """Returns the size rounded down, as `ullage` prints sizes."""
    return f"{math.floor(size * 100 / GIB) / 100:.2f} GiB"


def columns(curve: Curve, steps: int, count: int) -> list[int]:
    """Returns the most bytes held in each of `count` equal parts of the axis. A part without a sample repeats the one
    before."""
    most: list[int | None] = [None] * count
    for at, size in curve.points:
        column = min(count - 1, int(at / (steps + 1) * count))
        most[column] = max(most[column] or 0, size)
    return list(itertools.accumulate(most, lambda before, size: before if size is None else size, initial=0))[1:]


def terminal_lines(m: Measured, style: Style) -> list[str]:
    """Returns the drawing as lines of text. The budget is a line between two rows, so no row is partly below and partly
    above it."""
    full, light, dash, floor, side = "█░╌─│" if style.unicode else "#.-_|"
    cyan, grey, red = (36, 90, 31) if style.colours else (0, 0, 0)

    def paint(text: str, colour: int) -> str:
        return f"\033[{colour}m{text}\033[0m" if colour and text.strip() else text

    margin = 10  # "2.41 GiB" and the axis
    wide = max(1, (min(max(style.width, 50), 100) - margin - 1) // (m.steps + 1))  # the legend needs 50
    below = max(1, round(9 * m.budget / m.top()))
    row_bytes = m.budget / below
    above = math.ceil((m.top() - m.budget) / row_bytes)
    held = list(zip(*(columns(curve, m.steps, wide * (m.steps + 1)) for curve in (m.plain, m.within))))

    def row(number: int) -> str:
        """Fills a cell if at least half of its height is held. `number` counts from the bottom."""
        half = (number + 0.5) * row_bytes
        cells = [full if within >= half else light if plain >= half else " " for plain, within in held]
        colour = {full: cyan, light: grey, " ": 0}
        return "".join(paint("".join(run), colour[cell]) for cell, run in itertools.groupby(cells))

    def line(label: str, text: str) -> str:
        return f"{label:>{margin - 2}} {side}{text}".rstrip()

    rows = [row(number) for number in range(above + below)][::-1]
    words = f" budget {gib(m.budget)}"
    budget_line = paint(words.rjust(len(held), dash) if len(held) > len(words) else dash * len(held), red)
    slots = [*map(str, range(1, m.steps + 1)), "save"]
    axis = "".join(f"{slot:^{wide}}" if len(slot) <= wide - 1 else " " * wide for slot in slots)
    return [line(gib(m.top()) if number == 0 and above else "", text) for number, text in enumerate(rows[:above])] + [
        line("", budget_line)] + [line("", text) for text in rows[above:]] + [
        line("0", floor * len(held)),
        f"{'step':>{margin - 1}} {axis}".rstrip(),
        f"{'':{margin}}{paint(light * 2, grey)} plain   {paint(full * 2, cyan)} within the budget"]


# Layout of the picture, in pixels of the PNG.
WIDTH, HEIGHT = 1200, 640
LEFT, TOP, RIGHT, BOTTOM = 96, 128, 1168, 560
SHARP = 2  # drawn this much larger, then reduced, for smooth edges
INK, SOFT, GRID = "#1f2933", "#52606d", "#e4e7eb"
PLAIN, PLAIN_AREA, WITHIN, WITHIN_AREA, BUDGET = "#7b8794", "#d9dee4", "#0b69a3", "#8ec5e8", "#cf1124"


def nice_step(top: float) -> float:
    """Returns a round distance between marks of the axis, so that there are four to nine of them."""
    return next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if top / step <= 8)


def draw_png(m: Measured, path: pathlib.Path) -> None:
    from PIL import Image, ImageDraw, ImageFont  # imported here, so that the rest works without Pillow

    image = Image.new("RGB", (WIDTH * SHARP, HEIGHT * SHARP), "white")
    draw = ImageDraw.Draw(image)

    def text(x: float, y: float, words: str, size: int, colour: str, anchor: str = "la", halo: int = 0) -> None:
        draw.text((x * SHARP, y * SHARP), words, colour, ImageFont.load_default(size * SHARP), anchor,
                  stroke_width=halo * SHARP, stroke_fill="white")

    def stroke(points: list[tuple[float, float]], colour: str, wide: float = 1) -> None:
        draw.line([(x * SHARP, y * SHARP) for x, y in points], colour, round(wide * SHARP), "curve")

    top = m.top() * 1.08
    y_of = lambda size: BOTTOM - size / top * (BOTTOM - TOP)
    x_of = lambda step: LEFT + step / (m.steps + 1) * (RIGHT - LEFT)

    text(LEFT, 22, m.title, 26, INK)
    text(LEFT, 58, "Resident memory of the process, as the operating system counts it", 17, SOFT)
    step = nice_step(top / GIB)
    marks = [step * number for number in range(int(top / GIB / step) + 1)]
    for mark in marks:
        stroke([(LEFT, y_of(mark * GIB)), (RIGHT, y_of(mark * GIB))], GRID)
        text(LEFT - 10, y_of(mark * GIB), f"{mark:g}", 16, SOFT, "rm")
    text(LEFT - 10, TOP - 14, "GiB", 16, SOFT, "rm")

    wide = RIGHT - LEFT
    for curve, line, area in ((m.plain, PLAIN, PLAIN_AREA), (m.within, WITHIN, WITHIN_AREA)):
        shape = [(LEFT + x, y_of(size)) for x, size in enumerate(columns(curve, m.steps, wide))]
        draw.polygon([(x * SHARP, y * SHARP) for x, y in [(LEFT, BOTTOM), *shape, (shape[-1][0], BOTTOM)]], area)
        stroke(shape, line, 2)

    every = math.ceil((m.steps + 1) / 20)
    for number in range(m.steps + 1):
        stroke([(x_of(number), BOTTOM), (x_of(number), BOTTOM + 6)], SOFT)
        if number == m.steps or number % every == 0:
            text(x_of(number + 0.5), BOTTOM + 8, "save" if number == m.steps else str(number + 1), 16, SOFT, "ma")
    stroke([(LEFT, BOTTOM), (RIGHT, BOTTOM)], SOFT)
    text((LEFT + RIGHT) / 2, BOTTOM + 40, "step", 17, SOFT, "ma")

    for x in range(LEFT, RIGHT, 16):
        stroke([(x, y_of(m.budget)), (min(x + 10, RIGHT), y_of(m.budget))], BUDGET, 2.5)
    text(RIGHT - 6, y_of(m.budget) - 5, f"budget {gib(m.budget)}", 18, BUDGET, "rd", halo=2)

    x = LEFT
    for words, curve, line, area in (("plain", m.plain, PLAIN, PLAIN_AREA), ("within the budget", m.within, WITHIN, WITHIN_AREA)):
        draw.rectangle([x * SHARP, 93 * SHARP, (x + 22) * SHARP, 107 * SHARP], area, line, 2 * SHARP)
        legend = f"{words}: peak {gib(curve.peak)}, {curve.seconds:.0f} s"
        text(x + 30, 100, legend, 18, INK, "lm")
        x += 30 + draw.textlength(legend, ImageFont.load_default(18 * SHARP)) / SHARP + 36
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw_png(Measured.load(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]))
