"""The page of published figures in a browser: it renders, and fetches nothing."""

import pytest

import optsched
from tests.support.builders.browser import chromium, requests

FEW = ["eaco-set-*", "eaco-28-energy-kwh-*"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    place = tmp_path_factory.mktemp("browser")
    page = optsched.reproduce("eaco", level="quick", only=FEW).page()
    (place / "index.html").write_text(page, encoding="utf-8")
    with chromium(place / "profile") as driver:
        driver.get((place / "index.html").as_uri())
        driver.asked = requests(driver)
        yield driver


def test_page_renders_and_fetches_nothing(driver):
    assert driver.title == "Published figures, measured again"
    assert len(driver.asked) == 1
    assert driver.asked[0].startswith("file:")
    assert driver.get_log("browser") == []
    images = "return [...document.images].map(i => i.complete && i.naturalWidth > 0)"
    assert driver.execute_script(images) == [True] * 4
    wide = "return document.documentElement.scrollWidth <= innerWidth"
    assert driver.execute_script(wide)


def test_every_row_shows_its_verdict_without_scrolling(driver):
    rows = driver.find_elements("css selector", ".prose tbody tr")
    assert len(rows) == 5
    table = driver.find_element("css selector", ".prose")
    assert driver.execute_script(
        "return arguments[0].scrollWidth <= arguments[0].clientWidth", table
    )
    shown = [row.find_elements("css selector", "td")[7].text for row in rows]
    assert shown == ["reproduced"] * 2 + ["setting unpublished"] * 3
