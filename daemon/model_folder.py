"""What the daemon reads of a model's folder itself; the rest is the engine's."""

import json
from collections.abc import Iterable
from pathlib import Path

from specd.daemon.errors import EngineFailed
from specd.daemon.rewrite.prompt import PromptForm


def bundled_folder() -> Path:
    """Folder of the model that comes with specd."""
    from specd.mini import weights_path

    return weights_path()


def bundled_drafter() -> Path:
    """Folder of the bundled model's DFlash drafter."""
    from specd.mini import dflash_path

    return dflash_path()


def prompt_form(folder: Path) -> PromptForm:
    """The form of prompt that the model was made for: specd.json says so, else the general one. Raises EngineFailed."""
    path = folder / "specd.json"
    try:
        form = json.loads(path.read_text(encoding="utf-8"))["prompt"]
    except FileNotFoundError:
        return "chat"
    except (OSError, ValueError, KeyError, TypeError):
        form = None
    if form == "region":
        return "region"
    if form == "chat":
        return "chat"
    raise EngineFailed(f'{path} must be {{"prompt": "chat"}} or {{"prompt": "region"}}; correct or remove it.')


Stamp = tuple[tuple[str, int, int], ...]


def stamp_of(files: Iterable[Path]) -> Stamp:
    """Name, time and size of each file that is there: equal as long as nobody writes to them."""
    found = []
    for path in files:
        try:
            info = path.stat()
        except OSError:
            continue
        found.append((str(path), info.st_mtime_ns, info.st_size))
    return tuple(found)


def folder_stamp(folder: Path) -> Stamp:
    """The stamp of what a model is loaded from."""
    return stamp_of([*sorted(folder.glob("*.safetensors")), *sorted(folder.glob("*.json"))])
