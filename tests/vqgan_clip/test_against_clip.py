#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tokeniser with CLIP's own (package clip-anytorch, with ftfy and regex), on random texts.

Repair of wrongly decoded characters is switched off in ftfy, because the tokeniser does not do it, and says so.
usage: test_against_clip.py PROGRAM     vqgan_clip_tokenise; ULLAGE_CLIP_VOCABULARY names the vocabulary
"""
import importlib.util
import os
import pathlib
import random
import subprocess
import sys

PIECES = [
    list("abcdefghijklmnopqrstuvwxyz"), list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), list("0123456789"), list(" \t\n\r\f") + [" "] * 9,
    list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "don't", "\u2019s", "\u201c", "\u201d", "\u017f", "\u212a"],
    ["&amp;", "&lt;", "&eacute;", "&rsquo;", "&#233;", "&#x2665;", "&copy", "&amp;amp;", "&nbsp;", "&#128;", "&hellip;"],
    [chr(c) for c in range(0xa0, 0x180)], [chr(c) for c in range(0x370, 0x3ff) if chr(c).isalpha()],
    [chr(c) for c in range(0x410, 0x450)], [chr(c) for c in range(0x4e00, 0x4e40)], [chr(c) for c in range(0xac00, 0xac20)],
    [chr(c) for c in range(0xff01, 0xffef)], [chr(c) for c in range(0xfb00, 0xfb07)], [chr(c) for c in range(0x1c4, 0x1cd)],
    ["\u0301", "\u0308", "\u0327", "\u200d", "\u00ad", "\u3000", "\u2028", "\ufeff", "\u0130", "\u03a3", "\u1e9e"],
    [chr(c) for c in range(0x1f600, 0x1f640)] + ["\u2665\ufe0f", "\U0001f469\u200d\U0001f680"],
    ["\u0661", "\u2460", "\u00bd", "\u2164", "\u0e01\u0e33", "\u0915\u094d\u0937", "\u05d0\u05bc", "\u0627\u0651"],
    ["a lighthouse in a storm", "Trending on ArtStation", "by Greg", "4k", "unreal engine", "oil on canvas", "caf\u00e9"],
    ["<|startoftext|>", "<|endoftext|>", "<|STARTOFTEXT|>"],
]


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(77)


def texts(count: int) -> list[str]:
    chance = random.Random(5)
    made = []
    for _ in range(count):
        kinds = chance.sample(PIECES, chance.randint(1, 5))
        made.append("".join(chance.choice(chance.choice(kinds)) for _ in range(chance.randint(0, 40))))
    return made


def main() -> int:
    vocabulary = os.environ.get("ULLAGE_CLIP_VOCABULARY")
    if not vocabulary:
        skip("ULLAGE_CLIP_VOCABULARY does not name CLIP's bpe_simple_vocab_16e6.txt.gz")
    package = importlib.util.find_spec("clip")
    if not package or not all(importlib.util.find_spec(name) for name in ("ftfy", "regex")):
        skip("this Python has not the packages clip-anytorch, ftfy and regex")
    import ftfy

    fix_text = ftfy.fix_text
    ftfy.fix_text = lambda text: fix_text(text, fix_encoding=False)
    # Loads the file alone, because the package itself would need torch.
    path = pathlib.Path(package.submodule_search_locations[0]) / "simple_tokenizer.py"
    spec = importlib.util.spec_from_file_location("simple_tokenizer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theirs = module.SimpleTokenizer(vocabulary)

    asked = texts(3000)
    ran = subprocess.run([sys.argv[1], vocabulary], input="".join(text + "\0" for text in asked).encode(),
                         stdout=subprocess.PIPE, check=True)
    lines = ran.stdout.decode().splitlines()
    assert len(lines) == len(asked), (len(lines), len(asked))
    wrong = 0
    for text, line in zip(asked, lines):
        wanted = " ".join(str(token) for token in theirs.encode(text))
        if line.strip() != wanted:
            wrong += 1
            print(f"{text!r}: {line.strip()}, wanted {wanted}")
    print(f"{len(asked)} texts, {wrong} with other tokens")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
