"""The settings: one TOML file, one dataclass. Every key has a default, a unit and a line of documentation here;
docs/settings.md is written from it (`python -m specd.daemon.settings`), and a test holds the two equal.
"""

import dataclasses
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from specd.daemon import paths, wire
from specd.daemon.errors import SettingsError


def _meta(unit: str, doc: str, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    return {"unit": unit, "doc": doc, "least": least, "most": most}


def _key(default: Any, unit: str, doc: str, *, least: float | None = None, most: float | None = None) -> Any:
    return field(default=default, metadata=_meta(unit, doc, least, most))


@dataclass(frozen=True)
class Settings:
    """What the daemon runs with. See the metadata of each field, or docs/settings.md."""

    model: str = _key("", "folder", "Model to keep warm: a folder with a Qwen3 model. Empty: the bundled model.")
    device: str = _key("auto", "name", "Where the model runs: auto, cpu, cuda, cuda:1, mps.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = _key("auto", "type", "Number type of the weights.")
    threads: int = _key(0, "threads", "CPU threads of the engine. 0: as many as the machine has cores.", least=0)
    draft_model: str = _key("", "folder", "A smaller Qwen3 model with the same tokenizer that drafts. Empty: none.")
    dflash: str = _key(
        "auto",
        "folder",
        "A DFlash drafter of the model. auto: the one in the model's folder, `dflash`, if any. Empty: none.",
    )
    proposer: Literal["auto", "edit", "ngram", "draft_model", "dflash"] = _key(
        "auto", "name", "Who drafts: auto (the best of those at hand), edit (the old text), ngram (earlier text)."
    )
    speculate: int = _key(
        -1, "tokens", "Tokens drafted a step at most. -1: the proposer's own limit; 0: none.", least=-1
    )
    temperature: float = _key(0.0, "", "Sampling temperature. 0: always the likeliest token.", least=0, most=100)
    top_k: int = _key(0, "tokens", "Sample among the k likeliest tokens. 0: all.", least=0)
    top_p: float = _key(1.0, "share", "Sample among the likeliest tokens that hold this share.", least=0.001, most=1)
    max_tokens: int = _key(
        0,
        "tokens",
        "Longest answer. 0: one and a half times the region and 512 more, within the model's window.",
        least=0,
    )
    max_lines: int = _key(4000, "lines", "Longest region that is rewritten.", least=1)
    guard: Literal["report", "refuse", "off"] = _key(
        "report",
        "",
        "A region that parsed before and does not after, or lost a definition: report it, refuse it, or neither.",
    )
    idle_unload: float = _key(
        0.0,
        "seconds",
        "Free the model's memory after this time without a job. 0: never. The next job loads it again.",
        least=0,
    )
    idle_shutdown: float = _key(0.0, "seconds", "End the daemon after this time without a job. 0: never.", least=0)
    job_time_limit: float = _key(600.0, "seconds", "A job that runs longer is ended. Waiting does not count.", least=1)
    max_active_jobs: int = _key(4, "jobs", "Jobs that take turns, step by step. Others wait.", least=1, most=64)
    max_queue: int = _key(64, "jobs", "Jobs that may wait. More are refused.", least=1)
    max_request: int = _key(16, "MiB", "Largest request that is read.", least=1, most=1024)
    request_timeout: float = _key(15.0, "seconds", "How long a client may take to send its request.", least=0.1)
    cache_memory: int = _key(
        1024, "MiB", "Memory for kept prompts (KV cache), so that a file seen before need not be read again.", least=0
    )
    watch: bool = _key(True, "", "Reload when the settings file or the model's folder changes.")
    trace: bool = _key(True, "", "Keep one record a job in trace.jsonl: counts and times, no text.")
    log_level: Literal["error", "warning", "info", "debug", "verbose"] = _key(
        "info", "", "What the log tells. Only verbose has your text in it."
    )
    log_size: int = _key(
        1024, "KiB", "The log and the traces start anew at this size; two older ones are kept.", least=16
    )
    presets: dict[str, str] = field(
        default_factory=dict,
        metadata=_meta("", 'Instructions that editors offer by name: `[presets]`, then `Name = "text"`.'),
    )


AT_START = frozenset({"threads", "cache_memory", "log_size", "watch", "max_request"})  # keys read only then


def load(path: Path | None = None) -> Settings:
    """Read the settings file; without one, the defaults. Raises SettingsError naming the key and the line."""
    path = path or paths.settings_path()
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return Settings()
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8; save it as UTF-8 or remove it.") from None
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}; make it readable or remove it.") from None
    return parse(text, str(path))


def parse(text: str, name: str = "config.toml") -> Settings:
    """Settings from TOML text. `name` is the file's name for messages. Raises SettingsError naming key and line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f'{name} is not TOML: {error}.\nKeys look like: model = "/path/of/a/folder"') from None
    known = {spec.name for spec in dataclasses.fields(Settings)}
    for key in data:
        if key not in known:
            hint = _nearest(key, known)
            raise SettingsError(
                f"{name}, line {_line_of(text, key)}: unknown key {key!r}.{hint}\nRemove it, or see docs/settings.md."
            )
    hints = get_type_hints(Settings)
    try:
        settings = Settings(**{key: wire.check(hints[key], value, key) for key, value in data.items()})
    except wire.WireError as error:
        line = _line_of(text, error.field)
        raise SettingsError(f"{name}, line {line}: {error.field} {error.message}.") from None
    for spec in dataclasses.fields(Settings):
        problem = _out_of_bounds(spec, getattr(settings, spec.name))
        if problem:
            raise SettingsError(f"{name}, line {_line_of(text, spec.name)}: {spec.name} {problem}.")
    return settings


def changed_keys(old: Settings, new: Settings) -> list[str]:
    """Names of the keys whose values differ."""
    return [spec.name for spec in dataclasses.fields(Settings) if getattr(old, spec.name) != getattr(new, spec.name)]


def markdown() -> str:
    """The table of keys that docs/settings.md holds."""
    rows = ["| key | type | default | unit | what it does |", "| --- | --- | --- | --- | --- |"]
    for spec in dataclasses.fields(Settings):
        kind = str(spec.type) if not isinstance(spec.type, type) else spec.type.__name__
        kind = " \\| ".join(re.findall(r"'(\w+)'", kind)) if "Literal" in kind else kind
        default = getattr(Settings(), spec.name)
        shown = {True: "true", False: "false"}[default] if isinstance(default, bool) else _toml(default)
        rows.append(f"| `{spec.name}` | {kind} | `{shown}` | {spec.metadata['unit']} | {spec.metadata['doc']} |")
    return "\n".join(rows) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def _out_of_bounds(spec: "dataclasses.Field[Any]", value: Any) -> str | None:
    least, most = spec.metadata["least"], spec.metadata["most"]
    # not (a <= b), so that NaN is out of bounds too
    if least is not None and not value >= least:
        return f"must be {least} or more, not {value}"
    if most is not None and not value <= most:
        return f"must be {most} or less, not {value}"
    return None


def _line_of(text: str, dotted: str) -> int:
    """1-based line of a key (a top-level one, or `table.key`) in TOML text; 1 if it cannot be told."""
    table, _, key = dotted.partition(".")
    current, table_line = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*[\"']?([^\]\"']+?)[\"']?\s*\]", line)
        if header:
            current = header[1]
            if current.split(".")[0] == table:
                if not key:
                    return number
                table_line = number
            continue
        name = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*(?:\.\s*\w+\s*)?=", line)
        if name and ((not current and name[1].split(".")[0] == table) or (current == table and name[1] == key)):
            return number
    return table_line


def _nearest(key: str, known: set[str]) -> str:
    import difflib

    near = difflib.get_close_matches(key, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


if __name__ == "__main__":
    print(markdown(), end="")
