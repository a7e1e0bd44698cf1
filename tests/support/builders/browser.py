"""A headless Chromium for tests of pages; tests skip where there is none."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1000,900",
)


def programs():
    """Return the paths of Chromium and its driver, or skip the test."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    driver = shutil.which("chromedriver")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if driver is None or chromium is None:
        pytest.skip("chromium and chromium-driver are not installed")
    return chromium, driver


@contextmanager
def chromium(folder: Path, *flags: str):
    """Yield a driver of a Chromium with a new profile in the folder; it logs what it requests."""
    browser, program = programs()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={folder}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(program))
    try:
        driver.get("about:blank")
        driver.get_log("performance")  # the page that it starts with
        yield driver
    finally:
        driver.quit()


def requests(driver):
    """Return the addresses that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [e["params"]["request"]["url"] for e in events
            if e["method"] == "Network.requestWillBeSent"]  # fmt: skip
    return [url for url in sent if not url.startswith("data:")]
