"""`specd doctor`: what is there, what fits, what is wrong, what to put in the settings. Loads torch, but no model."""

import importlib.metadata
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from specd.daemon import __version__, errors, lifecycle, paths, settings, transport
from specd.daemon.errors import SpecdError
from specd.daemon.model_folder import bundled_folder
from specd.daemon.worker import accelerators

# bf16 weights of the dense Qwen3 models in GiB, from their parameter counts; a tenth more is asked for the KV cache
SIZES: Final = {
    "Qwen3-0.6B": 1.1,
    "Qwen3-1.7B": 3.2,
    "Qwen3-4B": 7.5,
    "Qwen3-8B": 15.3,
    "Qwen3-14B": 27.5,
    "Qwen3-32B": 61.0,
}
_ROOM: Final = 1.1
_PACKAGES: Final = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "aiohttp",
    "watchfiles",
    "pygls",
    "tree-sitter",
)


@dataclass(frozen=True)
class Finding:
    """One line of the report. "bad" keeps specd from working, "warn" does not."""

    topic: str
    level: Literal["ok", "warn", "bad"]
    text: str


@dataclass(frozen=True)
class Device:
    """Where a model can run. memory: bytes free for it."""

    name: str
    text: str
    memory: int


def doctor_command(*, as_json: bool) -> int:
    """Print the findings; exit status 4 if one is bad."""
    found = findings()
    if as_json:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            print(f"{finding.level:5}{finding.topic:10}{finding.text}")
    return errors.FAILED if any(finding.level == "bad" for finding in found) else errors.DONE


def findings() -> list[Finding]:
    """All checks, in the order in which to read them."""
    found = [Finding("specd", "ok", f"{__version__}, Python {platform.python_version()} at {sys.executable}")]
    found += _packages()
    best = devices()
    found += [Finding("device", "ok", f"{device.name}: {device.text}") for device in best]
    try:
        chosen = settings.load()
        found.append(Finding("settings", "ok", f"{paths.settings_path()}" + _absent(paths.settings_path())))
        found.append(_model(chosen.model))
    except SpecdError as error:
        found.append(Finding("settings", "bad", str(error).replace("\n", " ")))
    found.append(_daemon())
    found += _advice(best)
    return found


def devices() -> list[Device]:
    """The devices, the best one first."""
    import psutil

    free = psutil.virtual_memory().available
    cpu = Device("cpu", f"{os.cpu_count()} cores, {free / 2**30:.1f} GiB of memory free", free)
    found = [
        Device(name, f"{model}, {room / 2**30:.1f} of {total / 2**30:.1f} GiB free", room)
        for name, model, room, total in accelerators()
    ]
    return [*sorted(found, key=lambda device: -device.memory), cpu]


def fitting(memory: int) -> list[str]:
    """The Qwen3 models whose bf16 weights and a KV cache fit in `memory` bytes, the smallest first."""
    return [name for name, size in SIZES.items() if size * _ROOM * 2**30 <= memory]


def _packages() -> list[Finding]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(Finding("package", "ok", f"{name} {importlib.metadata.version(name)}"))
        except importlib.metadata.PackageNotFoundError:
            found.append(Finding("package", "bad", f"{name} is missing; install specd again"))
    return found


def _model(name: str) -> Finding:
    folder = Path(name).expanduser() if name else bundled_folder()
    weights = sorted(folder.glob("*.safetensors"))
    if not folder.is_dir() and name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return Finding("model", "warn", f"{name} is a hub name; the first load may download it")
    if not (folder / "config.json").is_file() or not weights:
        return Finding(
            "model", "bad", f"{folder} has no config.json and *.safetensors; set `model` to a model's folder"
        )
    size = sum(path.stat().st_size for path in weights)
    return Finding("model", "ok", f"{folder} ({size / 2**20:.0f} MiB of weights)")


def _daemon() -> Finding:
    try:
        status = lifecycle.running_status()
        level: Literal["ok", "warn"] = "ok" if status["version"] == __version__ and not status["problem"] else "warn"
        problem = f"; {status['problem']}" if status["problem"] else ""
        address = transport.given_address() or transport.default_address()
        return Finding("daemon", level, f"{status['version']} runs at {address}, pid {status['pid']}{problem}")
    except errors.NoDaemon as error:
        how = "" if error.problem else f"; {lifecycle.how_to_start()}"  # what keeps one is a finding of its own
        return Finding("daemon", "ok", f"none runs{how}")
    except errors.DaemonUnavailable as error:
        return Finding("daemon", "warn", str(error).replace("\n", " "))
    except SpecdError as error:
        return Finding("daemon", "bad", str(error).replace("\n", " "))


def _advice(best: list[Device]) -> list[Finding]:
    device = best[0]
    names = fitting(device.memory)
    if not names:
        return [Finding("models", "ok", f"on {device.name} only the bundled model fits")]
    advice = [Finding("models", "ok", f"on {device.name} these fit in bf16: {', '.join(names)}")]
    if device.name == "cpu":
        return [
            *advice,
            Finding("advice", "ok", "without a GPU keep to the bundled model, or Qwen3-0.6B for short regions"),
        ]
    line = f'model = "/path/of/{names[-1]}" and device = "{device.name}"'
    return [*advice, Finding("advice", "ok", f"in {paths.settings_path()}: {line}")]


def _absent(path: Path) -> str:
    return "" if path.exists() else " (not there; the defaults hold)"
