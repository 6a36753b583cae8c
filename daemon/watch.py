"""Follows the settings file and the folders of loaded models, so that a change needs no restart.

A changed setting is applied, or said to need a restart; a settings file with an error is reported and the old settings
stay. A model's folder that changed, and then stood still for a moment, is loaded again beside the old model.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from specd.daemon import paths
from specd.daemon import settings as settings_file
from specd.daemon.errors import SettingsError
from specd.daemon.models import ModelKey
from specd.daemon.service import Service

_log = logging.getLogger(__name__)
_LOOK: Final = 1.0  # seconds between looks where the system sends no notice
_QUIET: Final = 2  # looks without a change until a model's folder counts as whole

Stamp = tuple[tuple[str, int, int], ...]


class Watch:
    """Runs beside the server until it is cancelled."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._settings = _stamp([paths.settings_path()])
        self._models: dict[ModelKey, Stamp] = {}
        self._quiet: dict[ModelKey, int] = {}

    async def run(self) -> None:
        from watchfiles import awatch

        if not self._service.settings.watch:
            return
        while True:
            folders = self._folders()
            if not folders:
                await asyncio.sleep(_LOOK)
                self._look()
                continue
            notices = awatch(
                *folders, recursive=False, step=50, debounce=200, rust_timeout=int(_LOOK * 1000), yield_on_timeout=True
            )
            async for _ in notices:
                self._look()
                if self._folders() != folders:
                    break

    def _folders(self) -> list[Path]:
        wanted = {paths.settings_path().parent, *(Path(load.key.path) for load in self._service.pool.loads())}
        return sorted(folder for folder in wanted if folder.is_dir())

    def _look(self) -> None:
        """Compare what is on disk with what was there last time, and act on a difference."""
        stamp = _stamp([paths.settings_path()])
        if stamp != self._settings:
            self._settings = stamp
            self._read_settings()
        for load in self._service.pool.loads():
            if load.state == "ready":
                self._look_at_model(load.key)

    def _read_settings(self) -> None:
        try:
            self._service.apply(settings_file.load())
        except SettingsError as error:
            self._service.problem = str(error)
            _log.warning("the settings stay as they were: %s", error)

    def _look_at_model(self, key: ModelKey) -> None:
        folder = Path(key.path)
        stamp = _stamp([*sorted(folder.glob("*.safetensors")), *sorted(folder.glob("*.json"))])
        known = self._models.setdefault(key, stamp)
        if stamp != known:
            self._models[key] = stamp
            self._quiet[key] = 0
        elif key in self._quiet:
            self._quiet[key] += 1
            if self._quiet[key] >= _QUIET:
                del self._quiet[key]
                _log.info("the model %s changed on disk", folder.name)
                self._service.pool.reload(key)


def _stamp(files: list[Path]) -> Stamp:
    """Name, time and size of each file that is there."""
    found = []
    for path in files:
        try:
            info = path.stat()
        except OSError:
            continue
        found.append((str(path), info.st_mtime_ns, info.st_size))
    return tuple(found)
