# SPDX-License-Identifier: Apache-2.0
"""A vocabulary for CLIP's tokeniser: merges of a byte pair encoding, in the format of the published file.

The first line is a remark; then each line is a merge ("l i"), with </w> for the end of a word. Readers use the first
48,894 merges. A full file has more lines, a small one fewer. The merges come from the words below and, to fill up, from
letters in order. That suffices for trying a program, but the merges are not derived from any real text.
"""
import gzip
import itertools

MERGES = 48894  # read from a full file; with 512 symbols and two marks they make 49,408 tokens
WORDS = ("a the of in and it's is an on to with by 's storm lighthouse painting apple fruit bowl diagram hello world night sky "
         "cute smiling rodent portrait city forest sea oil digital trending artstation").split()
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def of_word(word: str):
    """Yields merges from left to right: a b, ab c, abc d</w>."""
    symbols = [*word[:-1], word[-1] + "</w>"]
    for symbol in itertools.accumulate(symbols[:-1]):
        yield symbol, symbols[len(symbol)]


def of_letters():
    """Yields merges that make two letters, then three, then four, each inside a word and at its end."""
    for end in ("", "</w>"):
        yield from ((a, b + end) for a, b in itertools.product(LETTERS, repeat=2))
    for length in (2, 3):
        for begin in itertools.product(LETTERS, repeat=length):
            yield from (("".join(begin), letter + end) for letter in LETTERS for end in ("", "</w>"))


def merges(full: bool) -> list[tuple[str, str]]:
    """Returns the merges, without any that make a token again."""
    seen, found = set(), []
    for pair in itertools.chain(*map(of_word, WORDS), of_letters() if full else ()):
        if "".join(pair) not in seen:
            seen.add("".join(pair))
            found.append(pair)
        if len(found) == MERGES:
            break
    return found


def size(full: bool) -> int:
    return 2 * 256 + len(merges(full)) + 2


def write(path, full: bool) -> None:
    """Writes the same bytes every time: the gzip header has no time and no name."""
    rows = ['"bpe_made_up.txt#version: 0.2', *(" ".join(pair) for pair in merges(full))]
    if full:
        rows += ["beyond the</w>", "last merge</w>"]
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write("\n".join(rows).encode() + b"\n")
