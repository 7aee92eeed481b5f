"""The page in a real browser: what it shows, and that it asks nobody but its service."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import onlineauto.service.http.handlers as handlers
from tests.service.browser import PROGRAM, draw, shown
from tests.service.serving import Service
from tests.waiting import until

PAGE = Path(handlers.__file__).with_name("page.html").read_text("utf-8")


def test_the_page_is_one_file_that_knows_no_other_host() -> None:
    assert re.findall(r"(?:https?:)?//[a-z][^\s\"]+", PAGE) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"innerHTML|document\.write|eval\(|<link|src=", PAGE)
    assert len(PAGE.splitlines()) < 600


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
def test_a_browser_shows_what_the_service_does(tmp_path: Path) -> None:
    with Service(tmp_path / "loop") as service, httpx.Client(base_url=service.url, timeout=30) as client:
        for number in range(200):
            body = {
                "event_id": f"e{number}",
                "context": {"user <b>": {"tom": 1}},
                "actions": {"a": {"topic": {"art": 1}}, "b": {"topic": {"music": 1}}},
            }
            answer = client.post("/v1/rank", json=body).json()
            client.post("/v1/reward", json={"event_id": answer["event_id"], "reward": float(answer["index"])})
        until(lambda: client.get("/v1/status").json()["learnt"] == 200)
        page = shown(service.url, tmp_path)
        assert 'data-learnt="200"' in page
        assert "deciding and learning" in page
        assert "topic \N{MULTIPLICATION SIGN} user &lt;b&gt;" in page
        assert page.count("<svg") == 2
        draw(page, tmp_path / "page.png", tmp_path)
        assert (tmp_path / "page.png").stat().st_size > 20_000
