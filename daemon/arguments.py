"""The command line: what `specd` takes, and what it means."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from specd.daemon import __version__, wire
from specd.daemon.edit import Options
from specd.daemon.errors import UsageError
from specd.daemon.protocol import ContextFile, RewriteRequest, Sampling, Speculation, Target, parse_rewrite

EXIT_CODES: Final = """\
exit status:
  0    done
  1    the model changed nothing, or declined; `specd status`: no daemon runs
  2    the command line or the settings are wrong
  3    a file was refused or could not be written; it is as it was
  4    the model, the engine or the daemon failed, the answer broke off, or
       `--guard refuse` refused the change; nothing was written
  130  interrupted"""

_OPTIONS: Final = {  # the protocol's fields, as the command line has them
    "instruction": "--instruction",
    "model": "--model",
    "draft": "--draft",
    "dflash": "--dflash",
    "max_tokens": "--max-tokens",
    "speculation.k": "--speculate",
    "sampling.temperature": "--temperature",
    "sampling.top_k": "--top-k",
    "sampling.top_p": "--top-p",
    "sampling.seed": "--seed",
}

_DESCRIPTION: Final = "Rewrites code by instruction with a model that a local daemon keeps warm."


class Parser(argparse.ArgumentParser):
    """One that says what is wrong in a line, and where to read more, instead of all its options."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"specd: {message}; see `{self.prog} --help`.\n")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says. Files may stand between options: argparse takes one run of them, we the others."""
    parser = build()
    args, rest = parser.parse_known_args(argv)
    at = rest.index("--") if "--" in rest else len(rest)
    wrong = [word for word in rest[:at] if word.startswith("-") and word != "-"]
    files = rest[:at] + rest[at + 1 :]
    if wrong or (files and args.command != "edit"):
        what = " ".join(wrong or files)
        parser.exit(
            UsageError.exit_code, f"specd: unrecognized arguments: {what}; see `specd {args.command} --help`.\n"
        )
    try:
        args.files = [*getattr(args, "files", ()), *map(_file, files)]
    except argparse.ArgumentTypeError as error:
        parser.exit(UsageError.exit_code, f"specd: {error}; see `specd edit --help`.\n")
    return args


def build() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser: argparse.ArgumentParser = Parser(
        prog="specd",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"specd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_edit(commands)
    _add_daemon_commands(commands)
    return parser


def _add_edit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    edit = commands.add_parser(
        "edit",
        help="rewrite files by instruction",
        description="Rewrites each FILE by the instruction and writes it back, or shows the change.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    edit.add_argument("files", nargs="*", type=_file, metavar="FILE", help="text files; - is standard input")
    edit.add_argument("-i", "--instruction", required=True, metavar="TEXT", help="what to change")
    where = edit.add_mutually_exclusive_group()
    where.add_argument("--range", type=_line_range, metavar="A:B", help="rewrite lines A to B only (1 is the first)")
    where.add_argument("--at", type=_line, metavar="LINE", help="rewrite the smallest definition around LINE only")
    edit.add_argument("--diff", action="store_true", help="print the change as a unified diff and write nothing")
    edit.add_argument("--dry-run", action="store_true", help="write nothing")
    edit.add_argument("--json", action="store_true", help="print one JSON object a file")
    edit.add_argument("--stdin", action="store_true", help="text in, text out; FILE only names it")
    edit.add_argument("--atomic", action="store_true", help="write all files or none")
    edit.add_argument("--context", action="append", default=[], type=_file, metavar="FILE", help="quote from FILE too")
    edit.add_argument("--no-daemon", action="store_true", help="run the model in this process")
    model = edit.add_argument_group("model")
    model.add_argument("--model", metavar="FOLDER", help="a folder with a Qwen3 model (default: the setting)")
    model.add_argument("--speculate", type=int, metavar="K", help="tokens drafted a step at most; 0: plain decoding")
    model.add_argument("--draft", metavar="MODEL", help="a small model that drafts")
    model.add_argument("--dflash", metavar="DRAFTER", help="a DFlash drafter")
    model.add_argument("--proposer", choices=("auto", "edit", "ngram", "draft_model", "dflash"), help="who drafts")
    model.add_argument("--temperature", type=float, metavar="T", help="0: the likeliest token always")
    model.add_argument("--top-k", type=int, metavar="K", help="sample among the K likeliest; 0: all")
    model.add_argument("--top-p", type=float, metavar="P", help="sample among the likeliest that hold this share")
    model.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
    model.add_argument(
        "--sample-drafts",
        action="store_true",
        help="with a temperature: judge drafts by min(1, p/q); a seed then need not repeat its answer",
    )
    model.add_argument("--max-tokens", type=int, metavar="N", help="longest answer; 0: the setting")
    model.add_argument("--guard", choices=("report", "refuse", "off"), help="what to do with broken syntax")


def _add_daemon_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = commands.add_parser("serve", help="run the daemon here", allow_abbrev=False)
    serve.add_argument("--model", metavar="FOLDER", help="in place of the setting")
    serve.add_argument("--replay", metavar="FILE", help="say what FILE tells, for tests of clients (docs/http.md)")
    serve.add_argument("--device", metavar="NAME", help="in place of the setting")
    serve.add_argument("--tcp", type=_port, nargs="?", const=0, metavar="PORT", help="listen on loopback TCP")
    serve.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)
    commands.add_parser("lsp", help="run the language server for an editor, over stdio", allow_abbrev=False)
    status = commands.add_parser("status", help="what the daemon does", allow_abbrev=False)
    status.add_argument("--json", action="store_true", help="print all of it as JSON")
    stop = commands.add_parser("stop", help="stop the daemon when its jobs are done", allow_abbrev=False)
    stop.add_argument("--now", action="store_true", help="cancel its jobs")
    trace = commands.add_parser("trace", help="what past jobs cost", allow_abbrev=False)
    trace.add_argument("job", nargs="?", metavar="JOB", help="one job (default: the latest)")
    trace.add_argument("-n", "--count", type=int, metavar="N", help="how many (default 10; with --html 1)")
    how = trace.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the records as JSON lines")
    how.add_argument("--html", metavar="FILE", help="write the timeline as a page for a browser; - is standard output")
    doctor = commands.add_parser("doctor", help="check installation, devices and settings", allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    completion = commands.add_parser("completion", help="print a completion script", allow_abbrev=False)
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def edit_options(args: argparse.Namespace) -> Options:
    """What `specd edit` is asked for. Raises UsageError for what argparse cannot know to be wrong."""
    if args.atomic and args.stdin:
        raise UsageError("--atomic is for files; leave it out with --stdin.")
    if not args.files and not args.stdin:
        raise UsageError("name a FILE, or use --stdin.")
    if (args.stdin or Path("-") in args.files) and len(args.files) > 1:
        raise UsageError("standard input is one text; name one FILE at most with it.")
    if args.atomic and len({os.path.realpath(path) for path in args.files}) < len(args.files):
        raise UsageError("a file is named twice; with --atomic name each once.")
    _check_instruction(args.instruction)
    request = RewriteRequest(
        target=Target(text=" ", lines=args.range, at=args.at),
        instruction=args.instruction,
        model=_model(args.model),
        max_tokens=args.max_tokens,
        guard=args.guard,
        sampling=Sampling(args.temperature, args.top_k, args.top_p, None, args.seed),
        speculation=Speculation(
            args.speculate, _model(args.draft), _model(args.dflash), args.proposer, args.sample_drafts
        ),
        context=tuple(ContextFile(os.path.abspath(path)) for path in args.context),
    )
    try:
        parse_rewrite(wire.to_json(request))  # the daemon's own checks, before anything is read or started
    except UsageError as error:
        field, space, rest = str(error).partition(" ")
        raise UsageError(_OPTIONS.get(field, field) + space + rest) from None
    return Options(
        request=request,
        shows_diff=args.diff,
        is_dry=args.dry_run,
        as_json=args.json,
        is_atomic=args.atomic,
        in_process=args.no_daemon,
    )


def _model(name: str | None) -> str | None:
    """A folder as an absolute path, since the daemon stands elsewhere; other names as they are."""
    if not name:
        return name
    try:
        path = Path(name).expanduser()
        return str(path.absolute()) if path.exists() or name.startswith((".", "/", "~")) else name
    except (OSError, ValueError, RuntimeError):  # no name at all: the daemon's own check says so
        return name


def _check_instruction(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF  # Python has a byte of the command line that is no UTF-8 as U+DC80 and on
        raise UsageError(
            f"--instruction is not UTF-8: byte 0x{byte:02x} at character {error.start + 1}; write it in UTF-8."
        ) from None


def _file(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a FILE's name is empty")
    return Path(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write 1 to 65535, or nothing for a free one")
    return int(text)


def _line(text: str) -> int:
    """A 1-based line number as a 0-based one."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no line number; lines count from 1")
    return int(text) - 1


def _line_range(text: str) -> tuple[int, int]:
    """A:B, 1-based and inclusive, as 0-based half-open; A alone is one line."""
    first, _, last = text.partition(":")
    last = last or first
    if not (first.isdigit() and last.isdigit()) or not 1 <= int(first) <= int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of lines; write A:B with 1 <= A <= B")
    return int(first) - 1, int(last)
