# SPDX-License-Identifier: Apache-2.0
"""Finds CUDA wheels of torch, and unpacks the few files of them that the oracle needs.

usage: wheels.py unpack WHEEL FOLDER     writes FOLDER/torch-<version>/{include,lib}, prints that folder
"""
import dataclasses
import importlib.util
import pathlib
import re
import sys
import zipfile

LIBRARIES = ("libc10.so", "libc10_cuda.so")
HEADERS = ("torch/include/c10/", "torch/include/torch/headeronly/")


@dataclasses.dataclass
class Torch:
    version: str  # "2.14.1"
    root: pathlib.Path  # has include/ and lib/

    def runtime(self) -> str:
        """Returns the CUDA runtime that its library asks for: "libcudart.so.13"."""
        found = re.search(rb"libcudart\.so\.\d+", (self.root / "lib" / "libc10_cuda.so").read_bytes())
        return found.group().decode() if found else "no libcudart"


def unpack(wheel: pathlib.Path, folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the unpacked folder. None: the wheel is no CUDA build. Takes 5 MB of the wheel's 500 and a tenth of a
    second."""
    with zipfile.ZipFile(wheel) as members:
        names = members.namelist()
        if "torch/lib/libc10_cuda.so" not in names:
            return None
        target = folder / f"torch-{version_in(members.read('torch/version.py').decode())}"
        for name in (name for name in names if not name.endswith("/")):
            if name.startswith(HEADERS) or name in (f"torch/lib/{library}" for library in LIBRARIES):
                file = target / name.removeprefix("torch/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(members.read(name))
        (target / "version.py").write_bytes(members.read("torch/version.py"))  # last, so a partial folder has none
    return target


def version_in(text: str) -> str:
    return re.search(r"__version__ = '(\d+\.\d+\.\d+)", text).group(1)


def find(folder: pathlib.Path | None, scratch: pathlib.Path) -> list[Torch]:
    """Returns all CUDA builds by version: this Python's own torch, and those of the folder, packed and unpacked."""
    roots = []
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin:
        roots.append(pathlib.Path(spec.origin).parent)
    if folder is not None and folder.is_dir():
        packed = (unpack(wheel, scratch) for wheel in sorted(folder.glob("torch-*.whl")))
        roots += [root for root in packed if root is not None]
        roots += [version.parent for version in folder.glob("*/version.py")]
    found = {}
    for root in roots:
        if (root / "lib" / "libc10_cuda.so").exists():
            version = version_in((root / "version.py").read_text())
            found[version] = Torch(version, root.resolve())
    return sorted(found.values(), key=lambda torch: tuple(map(int, torch.version.split("."))))


def main() -> int:
    if len(sys.argv) != 4 or sys.argv[1] != "unpack":
        print(__doc__)
        return 2
    root = unpack(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    if root is None:
        print(f"{sys.argv[2]}: no CUDA build of torch")
        return 1
    print(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
