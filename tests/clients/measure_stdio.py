"""How many calls a second one client gets over standard input and output, four in flight: `measure_stdio.py BINARY [SECONDS]`."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

IN_FLIGHT = 4
#: 1 KB to judge.
OUTPUT = ("The forecast for Rome says eighteen degrees and a dry evening, so a light jacket is enough for the walk. " * 11)[:1024]
SPANS = [
    {"name": f"step {n}", "kind": "TOOL" if n % 2 else "LLM", "start_time": "2026-01-02T03:04:05Z", "end_time": "2026-01-02T03:04:06Z",
     "attributes": {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 12, "n": n}}
    for n in range(8)
]
CALLS = {
    "evaluate_output": {"output": OUTPUT, "input": "How warm is it in Rome this evening?"},
    "log_trace": {"agent_name": "clerk", "input": "How warm is it?", "output": OUTPUT[:200], "spans": SPANS},
}


class Client:
    def __init__(self, binary, home):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("IRIS_", "OTEL_"))} | {"IRIS_HOME": f"{home}/home"}
        self.process = subprocess.Popen([binary, "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message):
        self.write(message)
        return json.loads(self.process.stdout.readline())

    def call(self, number, tool, arguments):
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    def throughput(self, tool, arguments, seconds):
        # Ids of what is under way differ; the rest of the line is made once, so that the client costs little.
        before, after = json.dumps(self.call(0, tool, arguments)).encode().split(b'"id": 0', 1)
        numbers = itertools.count(1)

        def send():
            self.process.stdin.write(before + b'"id": %d' % next(numbers) + after + b"\n")

        begun, done, failed = time.monotonic(), 0, 0
        for _ in range(IN_FLIGHT):
            send()
        self.process.stdin.flush()
        while time.monotonic() - begun < seconds:
            answer = self.process.stdout.readline()
            failed += b'"isError":true' in answer
            done += 1
            send()
            self.process.stdin.flush()
        took = time.monotonic() - begun
        for _ in range(IN_FLIGHT):
            self.process.stdout.readline()
        assert failed == 0, f"{failed} of {done} failed"
        return done / took


def main():
    binary, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory(prefix="iris-test-") as home:
        client = Client(binary, home)
        while client.ask(client.call(1, "get_traces", {"limit": 1}))["result"].get("isError"):
            time.sleep(0.1)
        for tool, arguments in CALLS.items():
            client.throughput(tool, arguments, 1)
            print(f"{tool}: {client.throughput(tool, arguments, seconds):.0f} calls a second, {IN_FLIGHT} in flight", flush=True)
        client.process.stdin.close()
        client.process.wait(20)


if __name__ == "__main__":
    main()
