"""The page in a real browser: its content, and that it sends requests to its service only."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import onlineauto.service.http.page as pages
from onlineauto.cli import study_page
from tests.service.browser import PROGRAM, draw, page_text
from tests.service.serving import Service
from tests.waiting import until

PAGE = pages.page_of(Path(pages.__file__).with_name("service.html"))
STUDIES = pages.page_of(Path(study_page.__file__).with_name("studies.html"))
LOOPS = pages.page_of(pages.LOOPS_PAGE)


@pytest.mark.parametrize("page", [PAGE, STUDIES, LOOPS])
def test_a_page_is_one_file_that_knows_no_other_host(page: str) -> None:
    assert re.findall(r"(?:https?:)?//[a-z][^\s\"]+", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"innerHTML|document\.write|eval\(|<link|src=|\{\{[a-z]", page)
    assert len(page.splitlines()) < 600


def test_the_page_begins_with_what_people_ask_first() -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", PAGE)
    assert headings[:3] == [
        "Is it better than the baseline?",
        "What it prefers for whom",
        "What went wrong lately",
    ]


@pytest.mark.parametrize("page", [PAGE, STUDIES, LOOPS])
def test_a_page_fits_a_narrow_screen_and_both_schemes(page: str) -> None:
    style, body = page.split("</style>")
    rules = re.sub(r"(?s)@media \(prefers-color-scheme: dark\) \{.*?\n\}|:root \{.*?\n\}", "", style)
    assert "--live:" not in rules
    assert not re.findall(
        r"#[0-9a-f]{3,8}\b", rules + body
    )  # colours are variables, with a value for each scheme
    light, dark = (set(re.findall(r"--\w+(?=:)", each)) for each in re.findall(r"(?s):root \{(.*?)\}", style))
    assert light == dark
    assert not re.findall(r"(?<![-\w])(?:min-)?width: \d{3,}px", rules)
    assert body.count("<table") - body.count('<table><tbody id="changes">') == body.count('<div class="wide"')


@pytest.mark.ci
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
        page = page_text(service.url, tmp_path)
        assert 'data-learnt="200"' in page
        assert "deciding and learning" in page
        assert "topic \N{MULTIPLICATION SIGN} user &lt;b&gt;" in page
        assert page.count("<svg") == 2
        assert "<td>user &lt;b&gt;: tom</td><td>b</td>" in page
        verdict = re.search(r'id="verdict">([^<]*)', page)
        assert verdict is not None
        # Which model decides when depends on the time of its publication, and so does the evidence.
        assert re.match(
            r"(Yes: the model earns more|Not proved: the difference is|Too few decisions) ", verdict[1]
        )
        assert re.search(r'id="errors"><span class="soft">Nothing\.', page)
        draw(page, tmp_path / "page.png", tmp_path)
        assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.ci
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
def test_a_browser_shows_an_empty_service_and_its_troubles(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    with Service(tmp_path / "loop", "--ship", str(away)) as service:
        away.rename(tmp_path / "elsewhere")
        httpx.post(f"{service.url}/v1/rank", json={"actions": {"a": {}, "b": {}}}, timeout=30)
        until(lambda: httpx.get(f"{service.url}/v1/status", timeout=30).json()["copies"][0]["failures"])
        page = page_text(service.url, tmp_path)
        ready = httpx.get(f"{service.url}/readyz", timeout=30)
    assert (ready.status_code, ready.text[:33]) == (200, "stale: the log is not copied to /")
    assert "No decision has been learnt yet." in page
    assert f"curl {service.url}/v1/rank -d" in page
    assert "is listed once the model has made 50 decisions with it" in page
    assert re.search(
        rf"<li>The copy {tmp_path}/away is \d+ seconds and [1-9][\d,]* bytes behind: the folder", page
    )
    assert "deciding and learning; a copy of the log is behind" in page
