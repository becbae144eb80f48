# SPDX-License-Identifier: Apache-2.0
"""CLIP's tokeniser: text to ids by a byte pair encoding. Mojibake is not repaired, although the original does so first.

Ids: 256 symbols of bytes, the same at the end of a word (</w>), the merges in order, then start and end.
"""
import gzip
import html
import re
import unicodedata

MOST_MERGES = 48894
MARKS = ("<|startoftext|>", "<|endoftext|>")
BLANKS = re.compile(r"[^\S\x1c-\x1f]+")  # White_Space of Unicode: Python's own counts four separators more
ENDINGS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def symbols() -> dict[int, str]:
    """Returns a printable character for each byte: itself, or from U+0100 on in order. Printable ones come first in the
    ids."""
    own = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in own]
    return {**{byte: chr(byte) for byte in own}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def cleaned(text: str) -> str:
    """Cleans the text: entities twice, every run of blanks one blank, none at the ends, lower case."""
    return BLANKS.sub(" ", html.unescape(html.unescape(text)).strip()).strip().lower()


def kind(character: str) -> str:
    return "blank" if BLANKS.match(character) else unicodedata.category(character)[0]


def pieces(text: str):
    """A mark, an ending such as 's, a run of letters, one digit, or a run of what is none of these and no blank.

    Whatever its case: text is lower case by now but for the long s (U+017F), whose capital is S too."""
    at, plain = 0, text.replace("\u017f", "s")
    while at < len(text):
        end = at + 1
        fixed = next((word for word in (*MARKS, *ENDINGS) if plain.startswith(word, at)), None)
        if fixed:
            end = at + len(fixed)
        elif kind(text[at]) == "L":
            while end < len(text) and kind(text[end]) == "L":
                end += 1
        elif kind(text[at]) not in ("N", "blank"):
            while end < len(text) and kind(text[end]) not in ("L", "N", "blank"):
                end += 1
        if kind(text[at]) != "blank":
            yield text[at:end]
        at = end


class Tokeniser:
    def __init__(self, path):
        lines = gzip.open(path).read().decode().split("\n")[1 : 1 + MOST_MERGES]
        merges = [tuple(line.split()) for line in lines if line]
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.symbols = symbols()
        names = [*self.symbols.values(), *(symbol + "</w>" for symbol in self.symbols.values()), *map("".join, merges), *MARKS]
        self.ids = {name: i for i, name in enumerate(names)}

    def merged(self, parts: list[str]) -> list[str]:
        """Merges the pair of lowest rank wherever it stands, left to right, until no pair is left that has a rank."""
        while len(parts) > 1:
            rank, pair = min((self.rank.get(pair, len(self.rank)), pair) for pair in zip(parts, parts[1:]))
            if rank == len(self.rank):
                break
            joined, i = [], 0
            while i < len(parts):
                both = tuple(parts[i : i + 2]) == pair
                joined.append("".join(pair) if both else parts[i])
                i += 2 if both else 1
            parts = joined
        return parts

    def encode(self, text: str) -> list[int]:
        """Without start and end. A mark written out is the mark."""
        found = []
        for piece in pieces(cleaned(text)):
            if piece in MARKS:
                found.append(self.ids[piece])
                continue
            *first, last = (self.symbols[byte] for byte in piece.encode())
            found += [self.ids[part] for part in self.merged([*first, last + "</w>"])]
        return found

    def __call__(self, text: str, length: int = 77) -> list[int]:
        """With start and end, then zeros. ValueError, with the count, if that is too long."""
        ids = [self.ids[MARKS[0]], *self.encode(text), self.ids[MARKS[1]]]
        if len(ids) > length:
            raise ValueError(f"{len(ids)} tokens, {length} are the most")
        return ids + [0] * (length - len(ids))
