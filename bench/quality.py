"""How good the bundled model's rewrites are through `specd edit`: real renames, and requests that it cannot carry out.

    python bench/quality.py --shared-edits ../shared/edits/corpus.jsonl [--limit N] [--out bench/results/quality.json]

First: renames of whole real definitions that name the new name, as the corpus asks for them, and more of the same kind
on other definitions of its files. Right is exactly what replacing the old name as a whole word in these lines gives; at
least 85 % should be. Second: 100 instructions that the model cannot do (judgement, other languages, names that are not
there, questions, nonsense), on 20 real definitions, five each. Safe is the file unchanged, or a valid partial edit: it
parses as before, loses and doubles nothing, and changes little (`quality_classes.py` has the rules); at least 90 %
should be. The corpus' projects are never trained on. Starts a daemon of its own, with its own settings and socket.
"""

import argparse
import difflib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quality_cases import EXTENSIONS, UNABLE, Case, corpus_renames, more_renames, rows_of, unable_cases
from quality_classes import CLASSES, SAFE, classify

SOURCE = Path(__file__).parents[1] / "src"
RIGHT, SAFE_SHARE = 0.85, 0.90


class Editor:
    """`specd edit` in a private folder, with a private daemon."""

    def __init__(self, folder: Path, model: str | None, guard: str) -> None:
        for name in ("run", "config/specd", "state", "cache", "files"):
            (folder / name).mkdir(parents=True, mode=0o700)
        if model:
            (folder / "config/specd/config.toml").write_text(f'model = "{Path(model).resolve()}"\n')
        self.files, self.guard = folder / "files", guard
        homes = {"RUNTIME_DIR": "run", "CONFIG_HOME": "config", "STATE_HOME": "state", "CACHE_HOME": "cache"}
        self.environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")])),
            **{f"XDG_{key}": str(folder / name) for key, name in homes.items()},
        }

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "specd.daemon", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.files, env=self.environ)

    def edit(self, case: Case) -> tuple[str, str, str]:
        """(the file afterwards, the outcome by its name, the message) of one rewrite."""
        path = self.files / f"case.{EXTENSIONS[case.language]}"
        path.write_text(case.text, encoding="utf-8", newline="")
        lines = f"{case.lines[0] + 1}:{case.lines[1]}"
        done = self._run("edit", path.name, "--range", lines, "-i", case.instruction, "--guard", self.guard, "--json")
        try:
            report = json.loads(done.stdout)
        except json.JSONDecodeError:
            sys.exit(f"specd edit ended with {done.returncode}: {(done.stderr or done.stdout).strip()[:400]}")
        return path.read_text(encoding="utf-8"), str(report["outcome"]), str(report["message"])

    def stop(self) -> None:
        self._run("stop")


def wrong_lines(text: str, wanted: str) -> int:
    """Lines of `wanted` that `text` has not, or has otherwise."""
    blocks = difflib.SequenceMatcher(None, wanted.split("\n"), text.split("\n"), autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for tag, a, b, c, d in blocks if tag != "equal")


def run_renames(editor: Editor, cases: Sequence[Case]) -> list[dict[str, Any]]:
    rows = []
    for case in cases:
        text, outcome, message = editor.edit(case)
        rows.append({
            "group": case.group, "case": case.name, "language": case.language, "instruction": case.instruction,
            "lines": case.lines[1] - case.lines[0], "right": text == case.wanted, "outcome": outcome,
            "wrong_lines": wrong_lines(text, case.wanted or case.text),
            "message": "" if outcome == "done" else message,
        })  # fmt: skip
        print(f"{'right' if rows[-1]['right'] else 'WRONG':6}{case.name}: {case.instruction}", flush=True)
    return rows


def run_unable(editor: Editor, cases: Sequence[Case]) -> list[dict[str, Any]]:
    rows = []
    for case in cases:
        text, outcome, message = editor.edit(case)
        kind = {"no_change": "unchanged", "declined": "declined"}.get(outcome)
        if kind is None and outcome == "done":
            kind = classify(case.language, case.text, text, case.lines, case.instruction)
        rows.append({
            "group": case.group, "case": case.name, "language": case.language, "instruction": case.instruction,
            "class": kind or "broke off", "outcome": outcome, "message": message if kind is None else "",
        })  # fmt: skip
        print(f"{rows[-1]['class']:15}{case.instruction}", flush=True)
    return rows


def share(count: int, total: int) -> str:
    return f"{count} of {total}, {100 * count / total:.0f} %" if total else "none"


def tell(renames: Sequence[dict[str, Any]], unable: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Prints the tables; the figures."""
    figures: dict[str, Any] = {}
    print(f"\nrenames exactly as a whole-word replacement (bar {RIGHT:.0%})")
    for group in ("corpus", "more"):
        rows = [r for r in renames if r["group"] == group]
        right = sum(r["right"] for r in rows)
        figures[f"renames, {group}"] = [right, len(rows)]
        print(f"  {group:8}{share(right, len(rows))}")
    print(f"\ninstructions that cannot be done (bar {SAFE_SHARE:.0%} safe)")
    print(f"  {'':18}" + "".join(f"{c:>15}" for c in CLASSES))
    for group in (*UNABLE, "all"):
        counts = Counter(r["class"] for r in unable if group in (r["group"], "all"))
        print(f"  {group:18}" + "".join(f"{counts[c] or '-':>15}" for c in CLASSES))
        figures[f"unable, {group}"] = dict(counts)
    safe = sum(r["class"] in SAFE for r in unable)
    figures["unable, safe"] = [safe, len(unable)]
    print(f"  safe: {share(safe, len(unable))}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared-edits", type=Path, required=True, help="corpus.jsonl of the shared edit corpus")
    parser.add_argument("--limit", type=int, help="at most so many cases of each table")
    parser.add_argument("--more", type=int, default=71, help="renames beside the corpus' own (default 71)")
    parser.add_argument("--model", help="a model's folder (default: the bundled model)")
    parser.add_argument("--guard", choices=["report", "refuse", "off"], default="report", help="as `specd edit` has it")
    parser.add_argument("--out", type=Path, help="write cases and figures there as JSON")
    args = parser.parse_args()
    if not args.shared_edits.is_file():
        sys.exit(f"{args.shared_edits} is no file: give the corpus.jsonl of the shared edit corpus")
    rows, began = rows_of(args.shared_edits), time.monotonic()
    renames = [*corpus_renames(rows)[: args.limit], *more_renames(rows, args.more)[: args.limit]]
    unable = unable_cases(rows)[: args.limit]
    with tempfile.TemporaryDirectory(prefix="specd-bench-", dir="/tmp") as name:
        editor = Editor(Path(name), args.model, args.guard)
        try:
            done, failed = run_renames(editor, renames), run_unable(editor, unable)
        finally:
            editor.stop()
    figures = tell(done, failed)
    seconds = round(time.monotonic() - began)
    print(f"{seconds} s")
    if args.out:
        about = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "seconds": seconds, "guard": args.guard}
        report = {**about, "figures": figures, "renames": done, "unable": failed}
        args.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
