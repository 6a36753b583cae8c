"""A daemon that replays answers, for clients' tests, and the answers that it knows by their instructions."""

import json
from typing import Any

from daemon_home import Home, wait_for

MESH = {"swap": [["Grid", "Mesh"]]}
ANSWERS = [
    {"when": "at once", **MESH, "characters": 100000},
    {"when": "stream", **MESH, "step_ms": 15, "characters": 40},
    {"when": "slowly", **MESH, "step_ms": 60, "characters": 40},
    {"when": "nothing"},
    {"when": "refuse", "text": "I cannot do that."},
    {"when": "cut", "text": "```\nclass Mesh:\n    def __init__(self, width, height):\n        self", "end": "length"},
    {"when": "hang", **MESH, "end": "hang"},
    {"when": "fail", **MESH, "end": "fail"},
    {"when": "stumble", **MESH, "step_ms": 15, "characters": 40, "end": "fail"},
    {"when": "break", "swap": [["def get(self, x, y):", "def get(self, x, y:"]]},
]


def start_replay(home: Home, answers: list[dict[str, Any]]) -> None:
    """A daemon at `home` that answers so; it starts anew by itself if it dies."""
    file = home.work / "replay.json"
    file.write_text(json.dumps({"answers": answers}))
    home.settings.write_text(f'model = "{file}"\nwatch = false\n')
    home.start("serve")
    wait_for(home.client.is_reachable)
