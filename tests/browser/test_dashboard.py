"""The dashboard in a real Chromium: starts real sidecars, plays the demonstration's captured traffic and text that means
harm through their doors, and has pages.mjs visit every page, light and dark. Chromium comes from the system (Debian's
package), Node, playwright-core and axe-core from PyPI and npm into the target folder; without one of them it is skipped
and says so. IRIS_BLESS=1 writes the pictures of docs/images."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import node  # noqa: E402
import sidecar  # noqa: E402

KEY = "browser-s3cret"
HOSTILE = '"><img src=x onerror=alert(2)></div>\u202eevil\u2066'
HOUR = 3_600_000_000_000


def chromium():
    """The path of a Chromium. Ends the suite as skipped where there is none."""
    for name in ("chromium", "chromium-browser"):
        if shutil.which(name):
            return shutil.which(name)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-noto-color-emoji"]
        for command in (["apt-get", "update", "-qq"], install):
            subprocess.run(command, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL, timeout=900)
        if shutil.which("chromium"):
            return shutil.which("chromium")
    print("chromium is not installed, and only root may install it here")
    sys.exit(77)


def attribute(key, value):
    kind = {int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


class Sender:
    """Sends agent runs over OTLP/JSON, as an instrumented program would."""

    def __init__(self, http):
        self.http, self.random = http, random.Random(7)

    def id(self, size):
        return f"{self.random.getrandbits(size * 8):0{size * 2}x}"

    def send(self, agent, asked, answered, ago, model="gpt-4o-mini", session=None, tool=None, version="1.4.0"):
        trace, root, end = self.id(16), self.id(8), time.time_ns() - ago
        start, spans = end - self.random.randint(600, 5200) * 1_000_000, []

        def span(name, parent, begin, finish, error=None, **attributes):
            one = {"traceId": trace, "spanId": root if parent is None else self.id(8), "name": name, "kind": 1}
            one |= {"startTimeUnixNano": str(begin), "endTimeUnixNano": str(finish)}
            one["attributes"] = [attribute(key.replace("__", "."), value) for key, value in attributes.items() if value is not None]
            spans.append(one | ({"parentSpanId": parent} if parent else {}) | ({"status": {"code": 2, "message": error}} if error else {}))

        def step(part):
            return start + (end - start) * part // 100

        span(agent, None, start, end, openinference__span__kind="AGENT", agent__name=agent, input__value=asked, output__value=answered, session__id=session)
        if tool:
            name, arguments, result, error = tool
            span(name, root, step(10), step(40), error, openinference__span__kind="TOOL", tool__name=name, input__value=json.dumps(arguments), output__value=result)
        messages = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": asked}
        messages |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": answered}
        tokens = {"llm.token_count.prompt": self.random.randint(180, 900), "llm.token_count.completion": self.random.randint(30, 240)}
        span("ChatModel", root, step(45), step(98), **{"openinference.span.kind": "LLM", "llm.model_name": model}, **messages, **tokens)
        resource = {"attributes": [attribute("service.name", agent), attribute("service.version", version)]}
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
        post(f"http://{self.http}/v1/traces", json.dumps(body).encode(), "application/json")
        return trace

    def a_day(self):
        """Ordinary traffic of the last day, for charts to show something."""
        agents = [("harbour-guide", "gpt-4o-mini"), ("refund-desk", "claude-haiku-4-5"), ("tide-planner", "gpt-4o")]
        good = [
            ("What time is high tide at Porto Vell tomorrow?", "High tide at Porto Vell is at 06:42 and at 19:05 tomorrow. Both times are for the outer mole at Porto Vell."),
            ("Which berths are free on Friday for twelve metres?", "On Friday berths 14, 15 and 22 are free for twelve metres. Berth 22 lies closest to the gate."),
            ("Where is my refund for ticket 88?", "The refund for ticket 88 is on its way to your card. It arrives within five days of the refund."),
        ]
        for hour in range(22, 0, -1):
            for _ in range(self.random.choice([1, 2, 2, 3])):
                (agent, model), (asked, answered) = self.random.choice(agents), self.random.choice(good)
                roll = self.random.random()
                if roll < 0.08:
                    answered = "As an AI language model I cannot look that up. The tide is at [insert time here]."
                elif roll < 0.16:
                    answered = "Write to mara.quillfeather@quayhaven.io about it. She will help you with that."
                tool = ("tide_table", {"port": "Porto Vell"}, '{"high": ["06:42", "19:05"]}', None) if self.random.random() < 0.5 else None
                self.send(agent, asked, answered, hour * HOUR, model, f"visitor-{self.random.randint(1, 6)}", tool)


def post(url, body, kind):
    with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": kind}), timeout=30) as reply:
        assert reply.status == 200, url


def play(http):
    """The demonstration's captures through the real door."""
    for path in sorted((ROOT / "src" / "demo" / "captures").glob("*/*.pb")):
        signal = "logs" if ".logs." in path.name else "traces"
        post(f"http://{http}/v1/{signal}", path.read_bytes(), "application/x-protobuf")


def visit(what, told, seconds=1500):
    """Runs pages.mjs with Node."""
    entry = pathlib.Path(node.package("playwright-core", "1.64.1", "package.json"))
    axe = node.package("axe-core", "4.14.1", "axe.min.js")
    told |= {"what": what, "chromium": chromium(), "playwright": str(entry.parent), "axe": axe, "images": str(ROOT / "docs" / "images")}
    told["bless"] = os.environ.get("IRIS_BLESS") == "1"
    done = subprocess.run([node.node(), str(pathlib.Path(__file__).with_name("pages.mjs")), json.dumps(told)], timeout=seconds)
    assert done.returncode == 0, f"pages.mjs ended with {done.returncode}"


def ready(running):
    sidecar.until("the store is open", 60, lambda: sidecar.get(f"http://{running.runtime['web']}/api/v1/health")[0] == 200)


def every_page_shows_what_came(binary):
    with sidecar.sidecar(binary) as running:
        ready(running)
        visit("empty", {"base": f"http://{running.runtime['web']}", "http": running.runtime["http"]})
        http = running.runtime["http"]
        play(http)
        sender = Sender(http)
        sender.a_day()
        named = {
            "plain": sender.send("harbour-guide", "Who do I write to about berth 14?", "Write to mara.quillfeather@quayhaven.io, or call her at +1 415 555 2671. She knows berth 14 well.", 30_000_000_000, tool=("contact_card", {"name": "Mara"}, "", "TimeoutError: the directory did not answer")),
            "emoji": sender.send("emoji", "Who? \U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u2192 mara.quillfeather@quayhaven.io \U0001f389", 20_000_000_000),
            "rtl": sender.send("\u05de\u05d3\u05e8\u05d9\u05da", "\u05dc\u05de\u05d9?", "\u05db\u05ea\u05d1\u05d5 \u05d0\u05dc mara.quillfeather@quayhaven.io \u05d1\u05d1\u05e7\u05e9\u05d4", 20_000_000_000),
            "hostile": sender.send("<script>alert(1)</script>", HOSTILE, f"{HOSTILE} mara.quillfeather@quayhaven.io", 20_000_000_000, session="<b>s</b>", version="<i>1</i>", tool=("<u>tool</u>", {"<k>": "</pre><script>alert(3)</script>"}, "</div><script>alert(4)</script>", None)),
        }
        settled = lambda: all((running.trace(id) or {}).get("evals") for id in named.values()) and not any(one["in_progress"] for one in running.traces())
        sidecar.until("every trace is judged", 120, settled)
        visit("pages", {"base": f"http://{running.runtime['web']}", "traces": named})


def one_signs_in(binary):
    with sidecar.sidecar(binary, {"IRIS__WEB__API_KEY": KEY}) as running:
        ready(running)
        visit("signing", {"base": f"http://{running.runtime['web']}", "key": KEY})


if __name__ == "__main__":
    chromium()
    sidecar.main(every_page_shows_what_came, one_signs_in)
