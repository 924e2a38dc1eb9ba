# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven through the DevTools protocol, with nothing but
the standard library: as much of WebSocket and of the protocol as the tests
need. https://chromedevtools.github.io/devtools-protocol/"""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_S = 60


def browser_path():
    """The browser's program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Socket:
    """A WebSocket's client side: whole text messages (RFC 6455)."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n")
            .encode())
        while b"\r\n\r\n" not in self.buffer:
            self.receive()
        answer, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if b" 101 " not in answer.split(b"\r\n")[0]:
            raise OSError(f"no WebSocket: {answer!r}")

    def receive(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise OSError("the browser hung up")
        self.buffer += data

    def take(self, count):
        while len(self.buffer) < count:
            self.receive()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
        repeated = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data, "big") ^
                  int.from_bytes(repeated, "big")).to_bytes(size, "big")
        self.socket.sendall(head + mask + masked)

    def read(self):
        text = b""
        while True:
            first, size = self.take(2)
            if size == 126:
                size = struct.unpack("!H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.take(8))[0]
            data = self.take(size)
            if first & 0x0f in (0, 1):
                text += data
                if first & 0x80:
                    return text.decode()


class Browser:
    """One page of a headless browser. `problems` collects what its console
    reported, `requests` what it asked for."""

    def __init__(self, width=1200, height=900):
        self.folder = tempfile.mkdtemp(prefix="memsim-browser.")
        self.count = 0
        self.problems, self.requests, self.events = [], [], []
        self.process = subprocess.Popen(
            [browser_path(), "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions",
             "--hide-scrollbars", "--remote-debugging-port=0",
             f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = Socket(*self.address())
        target = self.send("Target.createTarget", url="about:blank")
        self.session = None
        self.session = self.send("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.resize(width, height)

    def address(self):
        """(port, path) that the browser writes down when it is ready."""
        path = pathlib.Path(self.folder, "DevToolsActivePort")
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            lines = path.read_text().split() if path.exists() else []
            if len(lines) == 2:
                return int(lines[0]), lines[1]
            time.sleep(0.05)
        raise OSError("the browser did not start")

    def handle(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and \
                params["type"] in ("error", "warning", "assert"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and \
                params["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(params["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        self.events.append(method)

    def send(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.read())
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]
            self.handle(answer)

    def open(self, url):
        self.events.clear()
        self.send("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.handle(json.loads(self.socket.read()))

    def run(self, script):
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Until the page has been drawn twice."""
        self.run("new Promise(done => requestAnimationFrame(() => "
                 "requestAnimationFrame(() => done(0))))")

    def resize(self, width, height, scheme="light"):
        self.send("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def middle(self, selector, x=0.5, y=0.5):
        """A point in an element, which is scrolled into sight."""
        return self.run(
            f"(() => {{ const e = document.querySelector({selector!r});"
            "e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect();"
            f"return [b.left + b.width * {x}, b.top + b.height * {y}];}})()")

    def mouse(self, kind, point, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=point[0],
                  y=point[1], **more)

    def hover(self, selector, x=0.5, y=0.5):
        point = self.middle(selector, x, y)
        self.settle()
        self.mouse("mouseMoved", (point[0] - 3, point[1]))
        self.mouse("mouseMoved", point)
        self.settle()

    def click(self, selector, x=0.5, y=0.5):
        point = self.middle(selector, x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, point, button="left", clickCount=1)
        self.settle()

    def type(self, text):
        self.send("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path, first="body", last=None):
        """The page, however long, from the element FIRST to the end of LAST."""
        left, top, width, height = self.run(
            f"(() => {{ const a = document.querySelector({first!r})"
            ".getBoundingClientRect();"
            f"const b = document.querySelector({(last or first)!r})"
            ".getBoundingClientRect();"
            "return [a.left + scrollX, a.top + scrollY, a.width,"
            "b.bottom - a.top]; })()")
        data = self.send("Page.captureScreenshot", format="png",
                         captureBeyondViewport=True,
                         clip={"x": left, "y": top, "width": width,
                               "height": height, "scale": 1})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
