# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium over WebDriver's plain HTTP, with no package beyond Debian's chromium and
chromium-driver."""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")

# Chromium's sandbox does not work for root. Without the background flags a fresh profile connects to the network.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--force-device-scale-factor=1"]


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="ullage-browser-")
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = None
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{found[1]}"
                break
        assert self.base, "chromedriver did not start"
        options = {"binary": CHROMIUM, "args": FLAGS + [f"--user-data-dir={self.profile.name}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = ""
        self.session = self.call("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("", None, "DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.profile.cleanup()

    def call(self, path, body, method="POST"):
        url = f"{self.base}/session" + (f"/{self.session}" if self.session else "") + path
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def devtools(self, command, **parameters):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width, height, dark=False, touch=False):
        """Sets how wide the page is shown, and whether the person likes it dark."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, file):
        self.log("browser"), self.log("performance")
        self.call("/url", {"url": pathlib.Path(file).resolve().as_uri()})
        # Sizes are final one frame after the page is there.
        self.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script, *arguments):
        return self.call("/execute/sync", {"script": script, "args": list(arguments)})

    def log(self, kind):
        return self.call("/se/log", {"type": kind})

    def requests(self):
        """Returns the addresses that the page asked for since it was opened, without its own."""
        sent = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        urls = [m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith("data:")][1:]

    def act(self, *sources):
        self.call("/actions", {"actions": list(sources)})
        self.call("/actions", None, "DELETE")

    def mouse(self, *actions):
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(actions)})

    def wheel(self, x, y, by):
        self.act({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": int(x), "y": int(y), "deltaX": 0, "deltaY": by, "duration": 0}]})

    def key(self, *keys):
        self.act({"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]})

    def shot(self, file, whole=True):
        """Writes a picture of the page into the file: of all of it, or of the part in view."""
        got = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole)
        pathlib.Path(file).write_bytes(base64.b64decode(got["data"]))
