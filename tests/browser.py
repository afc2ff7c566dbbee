"""Debian's chromium without a window, drawing in software: pictures of pages, and what they ask the network for."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--remote-debugging-port=0",
]


class Page:
    """An open page.

    Attributes:
        requests: addresses that it has asked for.
        complaints: errors of its scripts.
    """

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.loaded = False

    def wait_for_load(self) -> None:
        while not self.loaded:
            self._note(json.loads(self._socket.recv(timeout=600.0)))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=600.0))
            self._note(message)
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])

    def _note(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        self.loaded = self.loaded or method == "Page.loadEventFired"
        if method == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))

    def picture(self) -> np.ndarray:
        """``(height, width, 3)`` what is seen now, 0 to 255."""
        from PIL import Image

        data = base64.b64decode(self.call("Page.captureScreenshot")["data"])
        return np.array(Image.open(io.BytesIO(data)).convert("RGB"))

    def settled_picture(self, seconds: float = 40.0) -> np.ndarray:
        """The picture once it has more than a plain page's colours and stands still."""
        end = time.monotonic() + seconds
        before = self.picture()
        while time.monotonic() < end:
            time.sleep(0.7)
            now = self.picture()
            if now.std() > 5.0 and np.array_equal(now, before):
                break
            before = now
        return before

    def evaluate(self, script: str) -> Any:
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get(
            "value"
        )


@contextlib.contextmanager
def open_page(
    url: str, folder: Path, *, size: tuple[int, int] = (760, 480), offline: bool = False
) -> Iterator[Page]:
    """A page in a browser of its own, whose profile lies in a folder."""
    from websockets.sync.client import connect

    assert CHROMIUM is not None
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"]
    process = subprocess.Popen(
        [*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        port = _port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=600.0) as answer:
            target = next(item for item in json.load(answer) if item["type"] == "page")
        with connect(target["webSocketDebuggerUrl"], max_size=None) as socket:
            page = Page(socket)
            for domain in ("Page", "Network", "Runtime"):
                page.call(f"{domain}.enable")
            page.call(
                "Emulation.setDeviceMetricsOverride",
                width=size[0],
                height=size[1],
                deviceScaleFactor=1,
                mobile=False,
            )
            if offline:
                page.call(
                    "Network.emulateNetworkConditions",
                    offline=True,
                    latency=0,
                    downloadThroughput=0,
                    uploadThroughput=0,
                )
            page.call("Page.navigate", url=url)
            page.wait_for_load()
            yield page
    finally:
        process.terminate()
        process.wait(timeout=600.0)


def _port(file: Path) -> int:
    """Where the browser listens: it says so in a file of its profile."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            return int(file.read_text().split()[0])
        time.sleep(0.1)
    raise TimeoutError("the browser has not started")
