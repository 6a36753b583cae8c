"""The examples of editors/PROTOCOL.md are what the server reads and writes."""

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from specd.lsp import requests
from specd.lsp.options import _CHECKS

PAGE = (Path(__file__).parents[2] / "editors" / "PROTOCOL.md").read_text(encoding="utf-8")
RESULTS = {
    "specd/prepare": requests.PrepareResult,
    "specd/rewrite": requests.RewriteResult,
    "specd/revert": requests.RevertResult,
    "specd/status": requests.StatusResult,
}
NOTIFICATIONS = {"specd/region": requests.RegionParams, "specd/hunk": requests.HunkParams}


def sections() -> dict[str, list[dict[str, Any]]]:
    """The JSON examples under each heading that names a method."""
    parts = re.split(r"^### `([^`]+)` .*$", PAGE, flags=re.M)[1:]
    return {
        name: [json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", text, re.S)]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def names(kind: type) -> set[str]:
    return {requests.camel(field.name) for field in attrs.fields(kind)}  # type: ignore[arg-type]


def test_every_method_is_documented() -> None:
    assert set(sections()) == {*requests.PARAMS, *NOTIFICATIONS}


@pytest.mark.parametrize("method", RESULTS)
def test_the_example_of_a_request_is_read_and_its_result_complete(method: str) -> None:
    request, result = sections()[method]
    assert request["method"] == method
    assert requests.read(requests.PARAMS[method], request["params"])
    assert set(result["result"]) == names(RESULTS[method])


@pytest.mark.parametrize("method", NOTIFICATIONS)
def test_the_example_of_a_notification_is_complete(method: str) -> None:
    (notification,) = sections()[method]
    assert set(notification["params"]) == names(NOTIFICATIONS[method])


def test_every_option_is_documented() -> None:
    table = PAGE.split("**Options**")[1].split("## Plugins")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == set(_CHECKS)
