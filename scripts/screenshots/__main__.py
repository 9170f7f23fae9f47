"""Take the pictures: python -m screenshots [PAGE ...]. Set PENSTOCK_HOME to a folder of its own."""

import base64
import os
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from chromium import open_chromium
from penstock.dashboard import DashboardOptions, serve_dashboard
from penstock.kafka import Cluster
from penstock.ops.runs import alive
from penstock.paths import HOME_VARIABLE
from screenshots.scene import Scene, scene
from screenshots.small_png import small_png

TARGET = Path("docs/images/dashboard")
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
_LOAD_SECONDS = 40.0
_SETTLE_MS = 3_000
# Chromium decodes its own picture: Python's standard library cannot.
_PIXELS = """async (address) => {
  const image = await createImageBitmap(await (await fetch(address)).blob());
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""


def places() -> dict[str, tuple[str, Mapping[str, object], str]]:
    """The page, its parameters, and a text that it shows when it is ready; by the name of the picture."""
    run = next(f"{each.host}:{each.pid}" for each in alive("shop"))
    return {
        "groups": ("groups", {}, "OK"),
        "group": ("group", {"name": "shop", "at": "orders/3", "window": "10m"}, "/s in"),
        "apps": ("apps", {}, "shop"),
        "app": ("app", {"run": run}, "Longest lanes"),
        "rebalances": ("rebalances", {"group": "shop"}, "member"),
        "whatif": ("whatif", {"group": "shop", "add": 2}, "Other assignors"),
        "letters": ("letters", {"topic": "orders.dlq"}, "By reason"),
        "letter": ("letters", {"topic": "orders.dlq", "at": "0:0"}, "Traceback"),
        "topics": ("topics", {}, "shipments"),
        "topic": ("topic", {"name": "orders"}, "Hot keys"),
        "records": ("records", {"topic": "orders", "partition": 0}, "c-"),
        "spark": ("spark", {}, "Spark"),
    }


def main() -> None:
    wanted = set(sys.argv[1:])
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[HOME_VARIABLE] = str(Path(folder) / "home")
        with scene(Path(folder), seconds=_LOAD_SECONDS) as made:
            take_all(made, wanted)


def take_all(made: Scene, wanted: set[str]) -> None:
    options = DashboardOptions(allow_writes=True)
    with (
        serve_dashboard(options, connect=partial(Cluster, made.brokers), note=_say) as served,
        open_chromium() as chromium,
        chromium.in_use() as browser,
    ):
        for theme in ("light", "dark"):
            for size in SIZES:
                take(browser, served.url, theme, size, wanted)


def take(browser: Browser, url: str, theme: str, size: str, wanted: set[str]) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    page, converter = context.new_page(), context.new_page()
    converter.goto("about:blank")
    page.goto(url)
    origin = url.partition("/sign-in")[0]
    for name, (place, parameters, text) in places().items():
        if wanted and name not in wanted:
            continue
        page.goto(f"{origin}/#/{place}?{urlencode(parameters)}")
        page.locator("main").get_by_text(text).first.wait_for(timeout=120_000)
        page.wait_for_timeout(_SETTLE_MS)
        save(page, converter, TARGET / f"{name}-{theme}-{size}.png")
    context.close()


def save(page: Page, converter: Page, path: Path) -> None:
    taken = base64.b64encode(page.screenshot(animations="disabled")).decode()
    width, height, pixels = converter.evaluate(_PIXELS, f"data:image/png;base64,{taken}")
    path.write_bytes(small_png(base64.b64decode(pixels), width, height))
    _say(f"{path}: {path.stat().st_size:,} bytes")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


main()
