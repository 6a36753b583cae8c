"""Follows the settings file and the folders of loaded models, so that a change needs no restart.

A changed setting is applied, or said to need a restart; a settings file with an error is reported and the old settings
stay. A folder of a model or of its drafters that changed, and then stood still for a moment, is loaded again beside the
old model.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from specd.daemon import paths
from specd.daemon import settings as settings_file
from specd.daemon.errors import SettingsError
from specd.daemon.generation import Served
from specd.daemon.model_folder import Stamp, stamp_of
from specd.daemon.models import Load, ModelKey
from specd.daemon.service import Service

_log = logging.getLogger(__name__)
_LOOK: Final = 1.0  # seconds between looks where the system sends no notice
_QUIET: Final = 2  # looks without a change until a model's folder counts as whole


class Watch:
    """Runs beside the server until it is cancelled."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._settings = stamp_of([paths.settings_path()])
        self._changed: dict[ModelKey, tuple[Stamp, int]] = {}  # the latest stamp, and for how many looks it has stood

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
        wanted = {
            paths.settings_path().parent,
            *(folder for load in self._service.pool.loads() for folder in load.key.folders),
        }
        return sorted(folder for folder in wanted if folder.is_dir())

    def _look(self) -> None:
        """Compare what is on disk with what was there last time, and act on a difference."""
        stamp = stamp_of([paths.settings_path()])
        if stamp != self._settings:
            self._settings = stamp
            self._read_settings()
        for load in self._service.pool.loads():
            if load.state == "ready":
                self._look_at_model(load)

    def _read_settings(self) -> None:
        try:
            self._service.apply(settings_file.load())
        except SettingsError as error:
            self._service.problem = str(error)
            _log.warning("the settings stay as they were: %s", error)

    def _look_at_model(self, load: Load[Served]) -> None:
        stamp = load.key.stamp
        seen, quiet = self._changed.get(load.key, (load.stamp, _QUIET))
        if stamp != seen:
            self._changed[load.key] = (stamp, 0)
        elif quiet < _QUIET:
            self._changed[load.key] = (stamp, quiet + 1)
            if quiet + 1 == _QUIET and stamp != load.stamp:
                _log.info("the model %s changed on disk", Path(load.key.path).name)
                self._service.pool.reload(load.key)
