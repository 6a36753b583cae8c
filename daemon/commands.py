"""`specd status`, `stop` and `trace`: what the daemon says of itself, its end, and what past jobs cost."""

import json
import sys
from pathlib import Path
from typing import Any

from specd.daemon import errors, lifecycle, paths, trace, transport
from specd.daemon.errors import NoDaemon, UsageError


def status_command(*, as_json: bool) -> int:
    """Print the daemon's status; exit status 1 if none runs. Raises DaemonUnavailable if one does and cannot say."""
    try:
        status = lifecycle.running_status()
    except NoDaemon as error:
        print(json.dumps({"state": "stopped", "problem": error.problem}) if as_json else error)
        return errors.NO_CHANGE
    print(json.dumps(status, indent=2) if as_json else describe(status))
    return errors.DONE


def describe(status: dict[str, Any]) -> str:
    """The status for people."""
    jobs = status["jobs"]
    lines = [
        f"specd {status['version']}, pid {status['pid']}, {status['state']}, up {_duration(status['uptime_seconds'])}",
        f"memory    {_size(status['memory_bytes'])}",
        f"jobs      {jobs['active']} active, {jobs['waiting']} waiting",
    ]
    for model in status["models"]:
        lines.append(f"model     {model['path']}: {model['state']}")
        lines += [f"          {kind} {model[kind]}" for kind in ("dflash", "draft") if model[kind]]
        if model["state"] != "ready":
            share = f" ({100 * model['progress']:.0f} %)" if model["state"] == "loading" else ""
            lines.append(f"          {model['message']}{share}")
        elif "cache" in model:
            cache = model["cache"]
            lines += [
                f"          {model['device']}, {model['dtype']}, window {model['window']:,} tokens",
                f"          prompts kept: {cache['kept_tokens']:,} tokens, {_size(cache['kept_bytes'])}"
                f" of {_size(cache['limit_bytes'])}",
            ]
    if status["problem"]:
        lines.append(f"problem   {status['problem']}")
    if status["restart"]:
        lines.append(f"restart   {', '.join(status['restart'])}: changed, waits for the next start (`specd stop`)")
    return "\n".join([*lines, f"settings  {status['settings']}", f"log       {status['log']}"])


def stop_command(*, now: bool) -> int:
    """Stop the daemon and wait for its end."""
    address = transport.given_address() or transport.default_address()
    if lifecycle.stop(address, drain=not now):
        print("stopped", file=sys.stderr)
    else:
        print("no daemon runs", file=sys.stderr)
    return errors.DONE


def trace_command(job: str | None, count: int, *, as_json: bool) -> int:
    """Print the records of the latest `count` jobs, or of one."""
    records = _records(job, count)
    if not records:
        return errors.NO_CHANGE
    for record in records[-count:]:
        if as_json:
            print(json.dumps(record))
        elif job is None:
            print(trace.describe(record))
        else:
            print("\n".join(trace.describe_fields(record)))
            if "spans" in record:
                print("\n".join(["spans", *trace.describe_spans(record)]))
    return errors.DONE


def trace_page_command(job: str | None, count: int, file: str) -> int:
    """Write the timelines of the latest `count` jobs, or of one, as HTML to `file`. Raises UsageError if it cannot."""
    from specd.daemon.timeline import timeline_of
    from specd.daemon.trace_page import page_of

    records = _records(job, count)
    if not records:
        return errors.NO_CHANGE
    names = list(dict.fromkeys(record["job"] for record in reversed(records)))[:count][::-1]
    timelines = [timeline_of(name, [record for record in records if record["job"] == name]) for name in names]
    page = page_of(timelines)
    if file == "-":
        print(page, end="")
        return errors.DONE
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}.") from None
    print(f"wrote {file}", file=sys.stderr)
    return errors.DONE


def _records(job: str | None, count: int) -> list[dict[str, Any]]:
    """All records, or those of one job; where there are none it is said. Raises UsageError."""
    if count < 1:
        raise UsageError("-n must be 1 or more.")
    records = [record for record in trace.read(paths.trace_path()) if job is None or record["job"] == job]
    if not records:
        what = f"of job {job} " if job else ""
        print(f"no record {what}in {paths.trace_path()}", file=sys.stderr)
    return records


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
