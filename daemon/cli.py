"""The `specd` command: parse, dispatch, say errors. What is heavy is imported by the command that needs it."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from specd.daemon import arguments, errors
from specd.daemon.errors import SpecdError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    for name in ("stdout", "stderr"):  # None where the shell closed them
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    args = arguments.parse(argv)
    try:
        status = _run(args)
        sys.stdout.flush()
        return status
    except SpecdError as error:
        print(f"specd: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("specd: interrupted", file=sys.stderr)
        return errors.INTERRUPTED
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        sys.stderr.close()
        return errors.DONE
    except OSError as error:  # of the output: all else is caught where it happens
        print(f"specd: cannot write {error.filename or 'the output'}: {error.strerror}.", file=sys.stderr)
        _discard_output()
        return errors.REFUSED


def _discard_output() -> None:
    """So that Python does not try again to write what is left when it ends."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _run(args: Namespace) -> int:
    match args.command:
        case "edit":
            return _edit(args)
        case "serve":
            from specd.daemon.serve import serve_command

            model = args.model if args.replay is None else _replay(args.replay)
            return serve_command(model, args.device, args.tcp, is_detached=args.detached)
        case "lsp":
            import runpy  # the language server is another room, and its own program

            runpy.run_module("specd.lsp", run_name="__main__", alter_sys=True)
            return errors.DONE
        case "completion":
            from specd.daemon.completion import script

            print(script(args.shell), end="")
            return errors.DONE
        case "doctor":
            from specd.daemon.doctor import doctor_command

            return doctor_command(as_json=args.json)
        case "status":
            from specd.daemon.commands import status_command

            return status_command(as_json=args.json)
        case "stop":
            from specd.daemon.commands import stop_command

            return stop_command(now=args.now)
        case _:
            from specd.daemon.commands import trace_command, trace_page_command

            if args.html is not None:
                return trace_page_command(args.job, 1 if args.count is None else args.count, args.html)
            return trace_command(args.job, 10 if args.count is None else args.count, as_json=args.json)


def _replay(path: str) -> str:
    from specd.daemon.replay import is_replay, read_script

    if not is_replay(path):
        raise errors.UsageError(f"--replay {path}: the file's name must end in .json.")
    read_script(Path(path))
    return path


def _edit(args: Namespace) -> int:
    from specd.daemon.edit import edit_files, edit_stdin

    options = arguments.edit_options(args)
    if args.stdin or args.files == [Path("-")]:
        name = next((str(path) for path in args.files if path != Path("-")), None)
        return edit_stdin(name, options)
    return edit_files(args.files, options)
