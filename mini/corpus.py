"""Training text: permissively licensed source files, split by repository into train and held out.

    python -m specd.mini.corpus --shared ../shared/corpus/code.jsonl.xz --archives DIR --site-packages DIR --out DATA

writes DATA/train.jsonl.xz, DATA/hold.jsonl.xz (one {"source", "language", "text"} a line) and DATA/sources.json,
which lists
every source with its licence as its own metadata states it. Only the first argument is needed; the others add npm
tarballs (*.tgz) and Debian packages (*.deb, *.orig.tar.*) found in folders, and Python packages installed in a folder.
A whole repository or package is either in training or held out. Nothing is downloaded.
"""

import argparse
import hashlib
import io
import json
import lzma
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path
from random import Random

from specd.mini.edits import SourceFile
from specd.mini.inputs import need

# Never in training. The first ten are sources of ../shared/edits, which is evaluation data.
HELD_OUT = frozenset(
    """
    pallets/click JuliaData/DataFrames.jl colinhacks/zod spf13/cobra BurntSushi/ripgrep fmtlib/fmt libuv/libuv
    google/gson nvim-telescope/telescope.nvim django/django Aider-AI/refactor-benchmark
    openlawlibrary/pygls pallets/flask JuliaCollections/DataStructures.jl SciML/DiffEqBase.jl yetone/avante.nvim
    microsoft/vscode-languageserver-node preact date-fns express commons-collections4 leveldb
    """.split()
)
_COPIES_OF_HELD_OUT = re.compile(
    r"/(fmt|click|flask|pygls|libuv|uv|zod|gson|preact|date-fns|express|leveldb|telescope|commons-collections4?)/"
)

EXTENSIONS = {
    "py": "python", "jl": "julia", "rs": "rust", "go": "go", "java": "java", "ts": "typescript", "js": "javascript",
    "mjs": "javascript", "c": "c", "h": "cpp", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "lua": "lua",
}  # fmt: skip
_SKIP = re.compile(
    r"/(third[-_]party|vendor|_vendor|dist|build|umd|cjs|esm5?|es5|_esm\w*|_cjs|min|locale|locales|generated|testdata|node_modules|debian"
    r"|test_data|benchmark|gwt|guava-gwt|android)/|\.min\.js$|\.d\.ts$|_pb2|\.pb\.|/lib/(?:esm|types)"
)
_PERMISSIVE = re.compile(
    r"(MIT|BSD(-[23]-Clause)?|Apache(-| |, Version |-Version-)?2(\.0)?|ISC|0BSD|BSL-1\.0|Boost-1\.0"
    r"|PSF-2\.0|Expat|Unlicense|Zlib)$",
    re.I,
)
_CAPS = {"python": 9e6, "javascript": 9e6, "typescript": 3e6, "cpp": 9e6, "java": 6e6}
_PACKAGE_CAP = 2.5e6  # characters of one package


def is_permissive(licence: str) -> bool:
    """Every term of an SPDX-like expression names a permissive licence."""
    terms = [t for t in re.split(r"\s+(?:AND|OR|and|or)\s+|[();]|, (?!Version)", licence) if t.strip()]
    return bool(terms) and all(
        _PERMISSIVE.match(t.strip().removesuffix(" License").removesuffix(" license")) for t in terms
    )


def is_usable(text: str) -> bool:
    """Code that a person could have written: no binary, no special tokens, no very long lines."""
    lines = text.split("\n")
    return (
        1000 <= len(text) <= 150_000
        and "\0" not in text
        and "<|im_" not in text
        and max(map(len, lines)) <= 240
        and len(lines) >= 15
        and len(text) / len(lines) < 90
    )


def read_shared(path: Path) -> Iterator[tuple[str, str, SourceFile]]:
    """(repository, licence, file) of the project's shared corpus."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["repo"], row["license"], SourceFile(f"{row['repo']}/{row['path']}", row["language"], row["text"])


def read_npm(path: Path) -> Iterator[tuple[str, str, SourceFile]]:
    """Files of an npm tarball, when its package.json names a permissive licence."""
    with tarfile.open(path) as archive:
        about = json.load(io.TextIOWrapper(_open(archive, "package/package.json"), "utf-8"))
        licence = str(about.get("license"))
        if is_permissive(licence):
            yield from _members(archive, about["name"], licence)


def read_debian(path: Path) -> Iterator[tuple[str, str, SourceFile]]:
    """Files of a binary package or an upstream source, if every License: field of its copyright file is permissive."""
    name = path.name.split("_")[0].removeprefix("lib").removesuffix("-dev").removesuffix("-java")
    with ExitStack() as stack:
        if path.suffix == ".deb":
            raw = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], check=True, capture_output=True).stdout
            archive = stack.enter_context(tarfile.open(fileobj=io.BytesIO(raw)))
            about = next((m for m in archive if re.fullmatch(r"\./usr/share/doc/[^/]+/copyright", m.name)), None)
            notice = _open(archive, about.name).read().decode() if about else ""
        else:
            side = next(path.parent.glob(path.name.split(".orig.")[0] + "-*.debian.tar.*"))
            with tarfile.open(side) as debian:
                notice = _open(debian, "debian/copyright").read().decode()
            archive = stack.enter_context(tarfile.open(path))
        licences = sorted(set(re.findall(r"^License: *(\S.*)$", notice, re.M)))
        if licences and all(map(is_permissive, licences)):
            yield from _members(archive, name, " AND ".join(licences))


def read_site_packages(folder: Path) -> Iterator[tuple[str, str, SourceFile]]:
    """Python files of installed packages whose metadata states one permissive licence; PyTorch's C++ headers too."""
    for package in sorted(distributions(path=[str(folder)]), key=lambda d: d.name):
        licence = _stated_licence(package)
        if not is_permissive(licence):
            continue
        files = [
            f
            for f in package.files or []
            if f.suffix == ".py"
            or (package.name == "torch" and re.match(r"torch/include/(c10|ATen/(?!ops/)|torch)", str(f)))
        ]
        Random(package.name).shuffle(files)
        for f in files:
            language = EXTENSIONS.get(f.suffix[1:])
            if language and not _SKIP.search(f"/{f}"):
                yield (
                    package.name,
                    licence,
                    SourceFile(f"{package.name}/{f}", language, Path(str(f.locate())).read_text("utf-8", "replace")),
                )


def _stated_licence(package: Distribution) -> str:
    about = package.metadata
    stated = _field(about, "License-Expression") or _field(about, "License")
    if not stated or len(stated) > 60:
        classes = [c.split(" :: ")[-1] for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
        stated = classes[0].replace("Apache Software License", "Apache-2.0") if len(classes) == 1 else ""
    return stated


def _field(about: PackageMetadata, name: str) -> str:
    return about[name] if name in about else ""  # noqa: SIM401 (PackageMetadata has no get)


def _open(archive: tarfile.TarFile, name: str) -> io.BufferedReader:
    member = archive.extractfile(name)
    if member is None:
        raise FileNotFoundError(name)
    return member  # type: ignore[return-value]


def _members(archive: tarfile.TarFile, name: str, licence: str) -> Iterator[tuple[str, str, SourceFile]]:
    found = []
    for m in archive:  # in the archive's order: a compressed one cannot be read at random
        language = EXTENSIONS.get(m.name.rsplit(".", 1)[-1])
        inner = "/" + m.name.removeprefix("./").removeprefix("package/")
        if m.isfile() and m.size < 200_000 and language and not _SKIP.search(inner):
            found.append(
                (
                    name,
                    licence,
                    SourceFile(name + inner, language, _open(archive, m.name).read().decode("utf-8", "replace")),
                )
            )
    Random(name).shuffle(found)
    yield from found


def split(
    rows: Iterable[tuple[str, str, SourceFile]], *, capped: bool
) -> tuple[list[SourceFile], list[SourceFile], dict[str, dict[str, object]]]:
    """(train, held out, {source: {licence, characters, held_out}}), duplicates and unusable files left out."""
    train: list[SourceFile] = []
    hold: list[SourceFile] = []
    seen: set[bytes] = set()
    sources: dict[str, dict[str, object]] = {}
    size: Counter[str] = Counter()
    for name, licence, file in rows:
        held_out = name in HELD_OUT
        text = file.text.replace("\r\n", "\n")
        digest = hashlib.sha256(text.encode()).digest()
        if (
            digest in seen
            or "�" in text
            or not is_usable(text)
            or (not held_out and _COPIES_OF_HELD_OUT.search(file.source))
        ):
            continue
        if capped and (
            size[name] > _PACKAGE_CAP or (not held_out and size[file.language] > _CAPS.get(file.language, 0))
        ):
            continue
        seen.add(digest)
        size[name] += len(text)
        if not held_out:
            size[file.language] += len(text)
        (hold if held_out else train).append(SourceFile(file.source, file.language, text))
        entry = sources.setdefault(name, {"licence": licence, "characters": 0, "held_out": held_out})
        entry["characters"] = size[name]
    return train, hold, sources


def write_files(path: Path, files: Iterable[SourceFile]) -> None:
    rows = sorted(files, key=lambda f: (f.language, f.source))  # like next to like compresses better
    text = "".join(
        json.dumps({"source": f.source, "language": f.language, "text": f.text}, ensure_ascii=False) + "\n"
        for f in rows
    )
    path.write_bytes(lzma.compress(text.encode(), preset=3))


def read_files(path: Path) -> list[SourceFile]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [SourceFile(**json.loads(line)) for line in lines]


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m specd.mini.corpus", description=(__doc__ or "").split("\n")[0])
    p.add_argument("--shared", type=Path, required=True, help="code.jsonl.xz of the shared corpus")
    p.add_argument(
        "--archives", type=Path, nargs="*", default=[], help="folders with *.tgz, *.deb and *.orig.tar.* files"
    )
    p.add_argument("--site-packages", type=Path, help="a folder of installed Python packages")
    p.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = p.parse_args()
    need(args.shared, *args.archives, *([args.site_packages] if args.site_packages else []))
    args.out.mkdir(parents=True, exist_ok=True)
    train, hold, sources = split(read_shared(args.shared), capped=False)
    extra: list[tuple[str, str, SourceFile]] = []
    for folder in args.archives:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".tgz":
                extra += read_npm(path)
            elif path.suffix == ".deb" or ".orig.tar." in path.name:
                extra += read_debian(path)
    if args.site_packages:
        extra += read_site_packages(args.site_packages)
    more = split(extra, capped=True)
    known = {hashlib.sha256(f.text.encode()).digest() for f in hold}
    train += [f for f in more[0] if hashlib.sha256(f.text.encode()).digest() not in known]
    hold += more[1]
    sources.update(more[2])
    write_files(args.out / "train.jsonl.xz", train)
    write_files(args.out / "hold.jsonl.xz", hold)
    (args.out / "sources.json").write_text(json.dumps(sources, indent=1, sort_keys=True) + "\n")
    for name, files in (("train", train), ("held out", hold)):
        size = Counter[str]()
        for f in files:
            size[f.language] += len(f.text)
        print(f"{name}: {len(files)} files,", ", ".join(f"{k} {v / 1e6:.1f} MB" for k, v in sorted(size.items())))


if __name__ == "__main__":
    main()
