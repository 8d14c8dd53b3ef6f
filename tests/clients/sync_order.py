"""Watches system calls: every 200 of the OTLP/HTTP door must leave after a sync of the journal segment that returned after the record was written."""

import contextlib
import os
import pathlib
import re
import signal
import tempfile
import urllib.request

import sidecar

REQUESTS = 20
CALLS = "pwrite64,pwritev,pwritev2,write,writev,sendto,sendmsg,fdatasync,fsync"


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def request(index):
    """One span that no other request holds."""
    span = field(1, index.to_bytes(16, "big")) + field(2, index.to_bytes(8, "big")) + field(5, b"step")
    return field(1, field(2, field(2, span)))


def events(log):
    """(what, path) in the order in which the calls returned; a call cut in two counts where it resumed."""
    open_calls = {}
    for line in log.splitlines():
        pid, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            open_calls[pid] = rest
            continue
        if rest.startswith("<... "):
            rest = open_calls.pop(pid, "") + rest
        name = rest.split("(", 1)[0]
        path = (re.search(r"\(\d+<([^>]*)>", rest) or [None, ""])[1]
        if ".seg" in path and name in ("fdatasync", "fsync") and rest.rstrip().endswith("= 0"):
            yield "sync", path
        elif ".seg" in path and "write" in name:
            yield "write", path
        elif '"HTTP/1.1 200' in rest and "x-protobuf" in rest:
            yield "ok", ""


def every_ok_leaves_after_its_sync(binary):
    with tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
        log = pathlib.Path(folder, "calls")
        prefix = ["strace", "-f", "-y", "-s", "200", "-e", f"trace={CALLS}", "-o", str(log)]
        running = sidecar.Sidecar(binary, pathlib.Path(folder), prefix=prefix)
        try:
            send(running.start())
        finally:
            # strace ends when what it traces does, and passes no signal on.
            with contextlib.suppress(AttributeError, ProcessLookupError):
                os.kill(running.runtime["pid"], signal.SIGTERM)
            running.process.wait(30)
        check(log.read_text(errors="replace"))


def send(running):
    for index in range(1, REQUESTS + 1):
        url = f"http://{running.runtime['http']}/v1/traces"
        post = urllib.request.Request(url, data=request(index), headers={"content-type": "application/x-protobuf"})
        with urllib.request.urlopen(post, timeout=20) as reply:
            assert reply.status == 200


def check(log):
    written, synced, oks = False, False, 0
    for what, _ in events(log):
        if what == "write":
            written, synced = True, False
        elif what == "sync":
            synced = written
        else:
            oks += 1
            assert synced, f"the OK of request {oks} left before its record was synced"
            written = synced = False
    assert oks == REQUESTS, f"{oks} of {REQUESTS} answers were seen"


if __name__ == "__main__":
    sidecar.main(every_ok_leaves_after_its_sync)
