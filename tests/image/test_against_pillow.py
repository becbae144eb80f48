# SPDX-License-Identifier: Apache-2.0
"""Compares the image layer with Pillow: decoding, torchvision's Resize and CenterCrop done by Pillow, texts in PNGs.

    python test_against_pillow.py BIN_DIR [REAL_IMAGE_FOLDER]

BIN_DIR holds image_dump and write_text_png. Pictures are made here from a seed; with REAL_IMAGE_FOLDER every picture
below it is compared too. Under pytest, BIN_DIR is taken from the environment variable ULLAGE_BIN_DIR. Needs numpy and
Pillow, no torch.
"""
import io
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np
from PIL import Image

warnings.simplefilter("ignore", UserWarning)  # Pillow warns about palettes with transparency
BIN_DIR = os.environ.get("ULLAGE_BIN_DIR", ".")
REAL_FOLDER = None

PNG_LEVELS = 0     # decoding a PNG: equal
JPEG_LEVELS = 2    # decoding a JPEG: Pillow has another libjpeg-turbo
RESIZE_LEVELS = 1  # on top of either. Columns then rows, as Pillow up to 12 does, is compared too and must be equal:
                   # Pillow 13 sums some tall pictures rows first
SIDES = (1, 7, 32, 64, 256)
SHAPES = ((1, 1), (2, 3), (33, 17), (64, 64), (97, 256), (300, 41), (5, 400), (257, 255))


class Tally:
    def __init__(self, what):
        self.what, self.pictures, self.worst, self.unequal = what, 0, 0, 0

    def add(self, ours, theirs, name, limit):
        assert ours.shape == theirs.shape, f"{name}: {ours.shape} and Pillow has {theirs.shape}"
        worst = int(np.abs(ours.astype(int) - theirs.astype(int)).max())
        assert worst <= limit, f"{name}: {worst} levels from Pillow, {limit} allowed"
        self.pictures += 1
        self.worst = max(self.worst, worst)
        self.unequal += worst != 0

    def report(self):
        assert self.pictures > 0, f"{self.what}: nothing was compared"
        print(f"{self.what}: {self.pictures} compared, largest difference {self.worst} levels, {self.unequal} not equal",
              flush=True)


def tallies(what):
    return Tally(f"{what}, decoded"), Tally(f"{what}, resized"), Tally(f"{what}, resized columns first")


class Dump:
    """The program image_dump, which answers one question after the other."""

    def __init__(self):
        self.program = None

    def ask(self, path, side):
        """Returns the bytes of our picture. If decoding fails, raises a RuntimeError with the message."""
        if self.program is None:
            self.program = subprocess.Popen([os.path.join(BIN_DIR, "image_dump")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.program.stdin.write(f"{side} {path}\n".encode())
        self.program.stdin.flush()
        head = self.program.stdout.readline().decode(errors="replace").strip()
        if head.startswith("error "):
            raise RuntimeError(head.removeprefix("error "))
        if not head:
            raise RuntimeError(f"{path}: exit code {self.end()}")
        return self.program.stdout.read(int(head))

    def end(self):
        """Returns the program's exit code, which also says whether a sanitizer found a leak."""
        program, self.program = self.program, None
        if program is None:
            return 0
        program.stdin.close()
        return program.wait()


DUMP = Dump()


def dump(path, side, shape):
    flat = np.frombuffer(DUMP.ask(path, side), np.uint8)
    assert flat.size == shape[0] * shape[1] * 3, f"{path}: {flat.size} bytes for {shape}"
    return flat.reshape(*shape, 3)


def pillow_rgb(source):
    picture = Image.open(source)
    if picture.mode == "I;16":  # Pillow clips at 255; here the high byte is meant
        high = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
        return high.convert("RGB")
    return picture.convert("RGB")


def pillow_square(picture, side, columns_first):
    """Returns what torchvision's Resize(side) and CenterCrop(side) make of a Pillow picture."""
    width, height = picture.size
    short, long = min(width, height), max(width, height)
    if short != side:
        other = int(side * long / short)
        size = (side, other) if width <= height else (other, side)
        if columns_first:
            picture = picture.resize((size[0], height), Image.BILINEAR)
        picture = picture.resize(size, Image.BILINEAR)
    width, height = picture.size
    top, left = int(round((height - side) / 2.0)), int(round((width - side) / 2.0))
    return picture.crop((left, top, left + side, top + side))


def compare(path, decoded, resized, ordered, levels, sides):
    theirs = pillow_rgb(path)
    if decoded is not None:
        decoded.add(dump(path, 0, (theirs.height, theirs.width)), np.asarray(theirs), path, levels)
    for side in sides:
        ours = dump(path, side, (side, side))
        resized.add(ours, np.asarray(pillow_square(theirs, side, False)), f"{path} at {side}", levels + RESIZE_LEVELS)
        ordered.add(ours, np.asarray(pillow_square(theirs, side, True)), f"{path} at {side}, columns first", levels)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def noise_png(rng, width, height, depth, colour, interlaced=False, extra=b""):
    """Returns a PNG of random bytes. Any filter type followed by any bytes is a valid row, so no encoder is needed."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = []
    for x, y, dx, dy in passes:
        across, down = (width - x + dx - 1) // dx, (height - y + dy - 1) // dy
        if across <= 0 or down <= 0:
            continue
        for _ in range(down):
            rows.append(bytes([rng.integers(0, 5)]) + rng.bytes((across * channels * depth + 7) // 8))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    packed = zlib.compress(b"".join(rows))
    parts = [packed[i:i + 1000] for i in range(0, len(packed), 1000)]
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + b"".join(chunk(b"IDAT", p) for p in parts)
            + chunk(b"IEND", b""))


def palette(rng, colours, opaque):
    return chunk(b"PLTE", rng.bytes(3 * colours)) + (b"" if opaque else chunk(b"tRNS", rng.bytes(min(colours, 5))))


def png_kinds(rng):
    """Yields (name, depth, colour, chunks before the pixels) for everything that the format allows."""
    gamma = chunk(b"gAMA", struct.pack(">I", 100000))
    for depth in (1, 2, 4, 8, 16):
        yield f"grey {depth}", depth, 0, b""
    yield "grey 8 tRNS", 8, 0, chunk(b"tRNS", b"\0\x07")
    yield "grey 2 tRNS", 2, 0, chunk(b"tRNS", b"\0\x01")
    yield "grey 8 gAMA", 8, 0, gamma
    for depth in (8, 16):
        yield f"RGB {depth}", depth, 2, b""
        yield f"RGB {depth} tRNS", depth, 2, chunk(b"tRNS", b"\0\1\0\2\0\3")
        yield f"grey alpha {depth}", depth, 4, b""
        yield f"RGBA {depth}", depth, 6, gamma
    for depth in (1, 2, 4, 8):
        yield f"palette {depth}", depth, 3, palette(rng, 2 ** depth, True)
        yield f"palette {depth} tRNS", depth, 3, palette(rng, 2 ** depth, False)
    yield "palette 8 too short", 8, 3, palette(rng, 200, True)


def write(folder, name, data):
    path = os.path.join(folder, name.replace(" ", "_").replace("/", "_"))
    with open(path, "wb") as file:
        file.write(data)
    return path


def test_png_of_every_kind():
    rng = np.random.default_rng(1)
    decoded, resized, ordered = tallies("PNG of every kind")
    with tempfile.TemporaryDirectory() as folder:
        for name, depth, colour, extra in png_kinds(rng):
            for width, height in ((1, 1), (3, 2), (33, 17), (70, 131)):
                for interlaced in (False, True):
                    data = noise_png(rng, width, height, depth, colour, interlaced, extra)
                    path = write(folder, f"{name} {width}x{height} {interlaced}.png", data)
                    compare(path, decoded, resized, ordered, PNG_LEVELS, (16, 50) if (width, height) == (33, 17) else ())
    decoded.report()
    resized.report()
    ordered.report()


def drawings(rng, width, height):
    """Yields pictures that show different faults of a resize: noise, hard edges, slopes."""
    y, x = np.mgrid[0:height, 0:width]
    yield "noise", rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    yield "edges", np.repeat((rng.integers(0, 2, (height, width, 1)) * 255).astype(np.uint8), 3, axis=2)
    slope = np.stack([x * 255 / max(width - 1, 1), y * 255 / max(height - 1, 1), (x + y) * 3 % 256], axis=2)
    yield "slope", slope.astype(np.uint8)
    yield "white", np.full((height, width, 3), 255, np.uint8)


def test_resize_of_every_shape():
    rng = np.random.default_rng(2)
    _, resized, ordered = tallies("PNG of every shape")
    with tempfile.TemporaryDirectory() as folder:
        for width, height in SHAPES:
            for name, pixels in drawings(rng, width, height):
                data = io.BytesIO()
                Image.fromarray(pixels).save(data, "PNG")
                path = write(folder, f"{name} {width}x{height}.png", data.getvalue())
                compare(path, None, resized, ordered, PNG_LEVELS, SIDES + (min(width, height),))
    resized.report()
    ordered.report()


JPEG_KINDS = {
    "4:4:4": ("RGB", {"subsampling": 0}), "4:2:2": ("RGB", {"subsampling": 1}), "4:2:0": ("RGB", {"subsampling": 2}),
    "restarts": ("RGB", {"subsampling": 2, "restart_marker_blocks": 3}), "kept RGB": ("RGB", {"keep_rgb": True}),
    "progressive": ("RGB", {"progressive": True}), "progressive 4:4:4": ("RGB", {"progressive": True, "subsampling": 0}),
    "grey": ("L", {}), "grey progressive": ("L", {"progressive": True}),
    "CMYK": ("CMYK", {}), "CMYK progressive": ("CMYK", {"progressive": True}),
}


def test_jpeg_of_every_kind():
    rng = np.random.default_rng(3)
    decoded, resized, ordered = tallies("JPEG")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (mode, options) in JPEG_KINDS.items():
            for width, height in SHAPES:
                for name, pixels in drawings(rng, width, height):
                    picture = Image.fromarray(pixels).convert(mode)
                    if mode == "CMYK":
                        picture = Image.fromarray(rng.integers(0, 256, (height, width, 4), dtype=np.uint8), "CMYK")
                    data = io.BytesIO()
                    picture.save(data, "JPEG", quality=int(rng.integers(20, 100)), **options)
                    path = write(folder, f"{kind} {name} {width}x{height}.jpg", data.getvalue())
                    compare(path, decoded, resized, ordered, JPEG_LEVELS, (48,) if name == "slope" else ())
    decoded.report()
    resized.report()
    ordered.report()


def test_exif_rotation_is_left_alone():
    rng = np.random.default_rng(4)
    tally = Tally("JPEG with EXIF rotation")
    with tempfile.TemporaryDirectory() as folder:
        exif = Image.Exif()
        exif[0x0112] = 6
        data = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(data, "JPEG", exif=exif)
        compare(write(folder, "turned.jpg", data.getvalue()), tally, tally, tally, JPEG_LEVELS, (8,))
    tally.report()


def test_cut_short_files_are_taken_as_pillow_takes_them():
    rng = np.random.default_rng(5)
    pixels = Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8))
    taken = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, options in (("PNG", {}), ("JPEG", {"quality": 30}), ("JPEG", {"quality": 30, "progressive": True})):
            data = io.BytesIO()
            pixels.save(data, kind, **options)
            for length in range(len(data.getvalue()) + 1):
                path = write(folder, "cut", data.getvalue()[:length])
                try:
                    theirs = np.asarray(Image.open(path).convert("RGB"))
                except (OSError, SyntaxError):
                    theirs = None
                try:
                    ours = dump(path, 0, (6, 5))
                except RuntimeError as error:
                    ours = None
                    assert path in str(error) and "exit code" not in str(error), error
                # libpng needs the checksums after the pixels (8 bytes before the 12 of the end chunk); Pillow does
                # not.
                in_checksums = kind == "PNG" and 12 < len(data.getvalue()) - length <= 20
                assert (ours is None) == (theirs is None or in_checksums), f"{kind} cut to {length} bytes: Pillow differs"
                if ours is not None:
                    assert np.abs(ours.astype(int) - theirs).max() <= JPEG_LEVELS
                taken, refused = taken + (ours is not None), refused + (ours is None)
    print(f"cut short: {taken + refused} compared, {taken} taken, {refused} refused")


def test_texts_are_read_back():
    kinds = {"tEXt": ["a cat", "", "caf\u00e9 \u00ff\n\u00a0", "['a cat:1', 'in snow:0.5']", "a" * 100_000],
             "iTXt": ["\u0100", "a \u2665 and \u00e9", "\U0001f680", "\ufffd", "\u4e00" * 20_000]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.png")
        for kind, texts in kinds.items():
            for text in texts:
                subprocess.run([os.path.join(BIN_DIR, "write_text_png"), path, "comment", text, "Other Key", "x"], check=True)
                picture = Image.open(path)
                assert picture.text == {"comment": text, "Other Key": "x"}, (picture.text, text)
                assert np.asarray(picture).ravel().tolist() == [1, 2, 3, 4, 5, 6]
                with open(path, "rb") as file:
                    data = file.read()
                assert kind.encode() + b"comment\0" in data and data.index(b"comment") < data.index(b"IDAT"), text[:20]
        subprocess.run([os.path.join(BIN_DIR, "write_text_png"), path, "comment", b"a\xffb"], check=True)
        assert Image.open(path).text == {"comment": "a\ufffdb"}
        subprocess.run([os.path.join(BIN_DIR, "write_text_png"), path], check=True)
        assert Image.open(path).text == {}


def test_real_folder():
    if REAL_FOLDER is None:
        print("real pictures: no folder was named, none compared")
        return
    decoded, resized, ordered = tallies("real pictures")
    for at, _, names in sorted(os.walk(REAL_FOLDER, followlinks=True)):
        for name in sorted(names):
            if name.lower().endswith((".png", ".jpg", ".jpeg")):
                levels = PNG_LEVELS if name.lower().endswith(".png") else JPEG_LEVELS
                compare(os.path.join(at, name), decoded, resized, ordered, levels, (64, 256))
    decoded.report()
    resized.report()
    ordered.report()


def main(arguments):
    global BIN_DIR, REAL_FOLDER
    if len(arguments) not in (1, 2):
        print(__doc__)
        return 2
    BIN_DIR, REAL_FOLDER = arguments[0], (arguments + [None])[1]
    failed = 0
    for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
        try:
            test()
        except Exception as error:  # one failure must not hide the next
            print(f"{name} FAILED: {type(error).__name__}: {error}")
            failed += 1
    if code := DUMP.end():
        print(f"image_dump FAILED: exit code {code}")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
