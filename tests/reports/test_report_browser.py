"""Reports in a browser: the page renders, its controls work, and nothing is fetched."""

import re

import pytest

from optsched.reports.report import report
from tests.support.builders.browser import chromium, requests
from tests.support.builders.report_outcomes import data_of, write_outcomes


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    sources = write_outcomes(tmp_path_factory.mktemp("outcomes"))
    return report(sources, title="What & <why>")


@pytest.fixture(scope="module")
def driver(page, tmp_path_factory):
    place = tmp_path_factory.mktemp("browser")
    reason = "is below the least", r"is \u003cbelow\u003e the least"  # looks like an element
    assert page.count(reason[0]) >= 1
    (place / "report.html").write_text(page.replace(*reason), encoding="utf-8")
    with chromium(place / "profile") as driver:
        driver.get((place / "report.html").as_uri())
        driver.asked = requests(driver)  # each test may be the first one in its process
        yield driver


def test_page_renders_and_fetches_nothing(driver):
    assert driver.title == "What & <why>"
    asked = driver.asked
    assert len(asked) == 1
    assert asked[0].startswith("file:")
    assert driver.get_log("browser") == []
    images = "return [...document.images].every(i => i.complete && i.naturalWidth > 0)"
    assert driver.execute_script(images)
    wide = "return document.documentElement.scrollWidth <= innerWidth"
    assert driver.execute_script(wide)


def test_frontier_slider_tells_the_point(driver):
    slider = driver.find_element("css selector", ".frontier input[type=range]")
    table = driver.find_element("css selector", ".frontier .readout")
    move = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    driver.execute_script(move, slider, 2)
    assert re.search(r"exact\s+0\.95833\s+0\.95833\s+0\.0000900 %\s+optimal", table.text)
    assert re.search(r"same-k\s+1\.15132\s+0\.88889\s+22\.8 %\s+feasible", table.text)
    assert "budget (GPUs): 3" in driver.find_element("css selector", ".frontier output").text
    driver.execute_script(move, slider, 0)
    assert "infeasible: the budget of 1.0 GPUs is <below> the least possible cost" in table.text


def test_frontier_follows_the_pointer_and_hides_methods(driver):
    from selenium.webdriver import ActionChains

    svg = driver.find_element("css selector", ".frontier .stage svg")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    ActionChains(driver).move_to_element_with_offset(svg, svg.size["width"] // 2 - 30, 0).perform()
    assert "budget (GPUs): 5" in driver.find_element("css selector", ".frontier output").text
    curves = "return document.querySelectorAll('.frontier .curve').length"
    assert driver.execute_script(curves) == 2
    driver.find_elements("css selector", ".frontier input[type=checkbox]")[1].click()
    assert driver.execute_script(curves) == 1
    assert driver.execute_script("return !!document.querySelector('.frontier .knee')")


def test_timeline_zooms_moves_and_tells(driver):
    from selenium.webdriver import ActionChains, Keys

    place = driver.find_element("css selector", ".timeline")
    canvas = place.find_element("css selector", "canvas")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    shown = place.find_element("css selector", "output")
    whole, drawn = shown.text, pixels(driver, canvas)
    place.find_element("css selector", "button[aria-label='zoom in']").click()
    closer = shown.text
    assert closer != whole
    assert pixels(driver, canvas) != drawn
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert shown.text != closer
    ActionChains(driver).drag_and_drop_by_offset(canvas, 120, 0).perform()
    moved = shown.text
    assert moved != closer
    place.find_element("css selector", "button[aria-label='show all']").click()
    assert shown.text == whole
    assert pixels(driver, canvas) == drawn


def test_timeline_tells_what_the_pointer_is_on(driver, page):
    from selenium.webdriver import ActionChains

    canvas = driver.find_element("css selector", ".timeline canvas")
    tip = driver.find_element("css selector", ".timeline .tip")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    above = -canvas.size["height"] // 2 + 40
    ActionChains(driver).move_to_element_with_offset(canvas, 0, above).perform()
    assert re.search(r"GPUs with a job: \d+", tip.text)
    bars = data_of(page)["timelines"][0]
    lane, count, start, end, job = max(zip(*bars["bars"], strict=True), key=lambda b: b[3] - b[2])
    top, height, left = 136, canvas.size["height"] - 162, 62
    x = left + (start + end) / 2 / bars["end"] * (canvas.size["width"] - left - 8)
    y = top + (lane + count / 2) / bars["lanes"] * height
    across, down = x - canvas.size["width"] / 2, y - canvas.size["height"] / 2
    ActionChains(driver).move_to_element_with_offset(canvas, int(across), int(down)).perform()
    assert tip.text.startswith(f"job {bars['jobs']['name'][job]}: ")
    assert "completion time" in tip.text


def test_timeline_shows_other_series(driver):
    from selenium.webdriver.support.ui import Select

    place = driver.find_element("css selector", ".timeline")
    canvas = place.find_element("css selector", "canvas")
    before = pixels(driver, canvas)
    Select(place.find_element("css selector", "select")).select_by_visible_text("jobs that run")
    assert pixels(driver, canvas) != before


def test_controls_caused_no_error(driver):
    """The last of the tests in the browser."""
    assert driver.get_log("browser") == []
    assert requests(driver) == []


def test_dark_page_is_readable(page, tmp_path):
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    dark = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    with chromium(tmp_path / "profile", *dark) as driver:
        driver.get((tmp_path / "report.html").as_uri())
        assert driver.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
        colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        text, ground = driver.execute_script(colours)
        assert contrast(text, ground) > 7


def pixels(driver, canvas):
    return driver.execute_script("return arguments[0].toDataURL()", canvas)


def contrast(first, second):
    """Contrast of two colours as WCAG 2.1 defines it."""
    bright = sorted(luminance(colour) for colour in (first, second))
    return (bright[1] + 0.05) / (bright[0] + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
