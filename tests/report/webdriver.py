"""A browser for tests: Chromium without a window, through its driver and the W3C WebDriver protocol."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""Protocol key for a reference to an element."""
KEYS = {"left": "\ue012", "right": "\ue014"}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """A window of Chromium with a recorded console."""

    def __init__(self, folder):
        binary = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
        driver = shutil.which("chromedriver")
        if not (binary and driver):
            pytest.skip("Chromium and chromedriver are not installed")
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        line = next(line for line in self.process.stdout if "successfully on port" in line)
        self.base = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}/session"
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder}",
        ]
        wanted = {"goog:chromeOptions": {"binary": binary, "args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._call("POST", "", capabilities={"alwaysMatch": wanted})
        self.base += f"/{session['sessionId']}"

    def close(self):
        self._call("DELETE", "")
        self.process.terminate()
        self.process.wait(timeout=20)

    def _call(self, method, path, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, path, fragment="", *, ready="return document.getElementById('message').hidden"):
        """Reload a page and wait until a script reports that it is ready."""
        self._call("POST", "/url", url="about:blank")
        self._call("POST", "/url", url=path.as_uri() + fragment)
        self.wait(ready)

    def run(self, script, *arguments):
        """Run a script. Returns its result."""
        return self._call("POST", "/execute/sync", script=script, args=list(arguments))

    def wait(self, script, *arguments, seconds=20):
        """Wait until a script returns something true."""
        end = time.monotonic() + seconds
        while not self.run(script, *arguments):
            assert time.monotonic() < end, f"in vain: {script}; console: {self.console()}"
            time.sleep(0.05)

    def find(self, selector):
        """Reference to the only element that a selector matches."""
        (element,) = self._call("POST", "/elements", using="css selector", value=selector)
        return element[ELEMENT]

    def click(self, selector):
        self._call("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self._call("POST", f"/element/{self.find(selector)}/value", text=text)

    def press(self, key):
        """Press a key at the focus."""
        actions = [{"type": kind, "value": KEYS.get(key, key)} for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def choose(self, name, value):
        """Choose an option in a `select`."""
        self.run(
            "const s = document.querySelector(`select[name=${arguments[0]}]`); s.value = arguments[1];"
            "s.dispatchEvent(new Event('change', {bubbles: true}))",
            name,
            value,
        )

    def texts(self, selector):
        """Texts of all elements that a selector matches."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def resize(self, width, height):
        """Resize the page to so many pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.emulate("Emulation.setDeviceMetricsOverride", **size)

    def emulate(self, command, **params):
        """Send a command of Chromium's developer tools."""
        return self._call("POST", "/goog/cdp/execute", cmd=command, params=params)

    def processor_seconds(self):
        """CPU seconds that the page's process has used so far."""
        self.emulate("Performance.enable")
        metrics = self.emulate("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "ProcessTime")

    def console(self):
        """Console messages since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", type="browser")]
