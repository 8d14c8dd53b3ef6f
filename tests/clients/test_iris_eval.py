"""The published Python client, unmodified: sync and async client, recorder, LangChain handler, pytest plugin."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from iris_eval import AsyncIrisClient, IrisClient, IrisError, IrisRecorder
from iris_eval.recorder import Span, TraceRecord, new_span_id, new_trace_id, now_nanos

import sidecar
from sidecar import until

LEAK = "Her social security number is 536-22-8716."


def opened(running):
    until("the store is open", 30, lambda: sidecar.get(f"http://{running.runtime['web']}/api/v1/health")[0] == 200)
    return f"http://{running.runtime['web']}"


def refused(call, status, word):
    try:
        call()
    except IrisError as error:
        assert error.status == status and word in error.message, (error.status, error.message)
        return
    raise AssertionError(f"not refused: {word}")


def the_sync_client(binary):
    with sidecar.sidecar(binary) as running, IrisClient(opened(running)) as iris:
        assert iris.health()["status"] == "ok"
        logged = iris.log_trace(
            "clerk", input="Who is she?", output="Nobody I may name.", framework="none", session_id="s-1", run="nightly",
            case_key="who", metadata={"a": 1}, latency_ms=12.5, cost_usd=0.01, token_usage={"prompt_tokens": 3, "completion_tokens": 4},
            tools=[{"name": "search", "inputSchema": {"type": "object"}}], tool_calls=[{"tool_name": "search", "input": {"q": "x"}}],
            timestamp="2026-01-02T03:04:05Z", evaluate=True, eval_type="safety",
        )
        assert logged["status"] == "stored" and logged["evaluation"]["eval_type"] == "safety", logged
        page = iris.get_traces(agent_name="clerk", session="s-1", since="2026-01-01", until="2026-01-31", limit=5, sort_order="asc")
        assert page["total"] == 1 and page["traces"][0]["metadata"]["run"] == "nightly", page
        assert iris.get_traces(q='nobody "may name"')["total"] == 1 and iris.get_traces(q="somebody")["total"] == 0
        detail = iris.get_trace(logged["trace_id"])
        assert detail["trace"]["output"] == "Nobody I may name." and detail["evals"][0]["id"] == logged["evaluation"]["id"]
        judged = iris.evaluate_output(LEAK, input="Who is she?", agent_name="clerk")
        assert judged["verdict"]["state"] == "fail" and judged["critical_failures"] == ["no_pii"], judged["verdict"]
        able = iris.capabilities()
        assert able["judge"]["enabled"] is False and able["judge"]["howToEnable"] and "log_trace" in able["tools"], able
        refused(lambda: iris.get_traces(agent="clerk"), 400, "agent")
        refused(lambda: iris.get_trace("0" * 31 + "1"), 404, "no stored or open trace")
        refused(lambda: iris.log_trace(" "), 400, "agent_name")


def the_async_client_with_a_key(binary):
    async def walk(base):
        async with AsyncIrisClient(base, api_key="0123456789") as iris:
            judged = await iris.evaluate_output("The refund was approved and posts within five days.", input="Was it approved?")
            assert judged["verdict"]["state"] in ("pass", "fail"), judged["verdict"]
            assert (await iris.get_traces(limit=1))["total"] == 1
            assert (await iris.health())["status"] == "ok" and (await iris.capabilities())["version"]
        async with AsyncIrisClient(base) as iris:
            try:
                await iris.get_traces()
            except IrisError as error:
                assert error.status == 401, error
            else:
                raise AssertionError("without the key the client came in")

    with sidecar.sidecar(binary, {"IRIS_API_KEY": "0123456789"}) as running:
        asyncio.run(walk(opened(running)))


def the_recorder_is_answered_with_verdicts(binary):
    with sidecar.sidecar(binary) as running:
        base, told, failed = opened(running), [], []
        recorder = IrisRecorder(base, on_result=told.append, on_error=failed.append)
        trace_id, now = new_trace_id(), now_nanos()
        said = {
            f"gen_ai.{way}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
            for way, role, text in (("input", "user", "Who is she?"), ("output", "assistant", LEAK))
        }
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk", **said}
        span = Span(trace_id, new_span_id(), "invoke_agent clerk", now - 1_000_000, now, attributes, status="ok")
        recorder.record(TraceRecord(recorder.resource("clerk"), [span]))
        assert recorder.flush(15) and not failed, failed
        recorder.close()
        assert recorder.stats == {"recorded": 1, "sent": 1, "dropped": 0}, recorder.stats
        # An answer waits three seconds for the verdict; a loaded machine may take longer.
        judged = lambda: told[0].get("evaluation") or next(iter((running.trace(trace_id) or {}).get("evals", [])), None)
        verdict = until("the trace is judged", 30, judged)["verdict"]
        assert told[0]["trace_id"] == trace_id and verdict["state"] == "fail", (told, verdict)


def the_langchain_handler(binary):
    from iris_eval.langchain import IrisCallbackHandler
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.runnables import RunnableLambda

    with sidecar.sidecar(binary) as running:
        told = []
        recorder = IrisRecorder(opened(running), on_result=told.append)
        handler = IrisCallbackHandler(agent_name="graph", recorder=recorder)
        chain = RunnableLambda(lambda text: text) | FakeListChatModel(responses=["Paris is the capital of France."])
        chain.invoke("What is the capital of France?", config={"callbacks": [handler]})
        assert recorder.flush(15)
        recorder.close()
        assert told and told[0]["agent_name"] == "graph" and told[0]["evaluation"]["verdict"]["state"], told


PLUGIN = '''
import pytest
from iris_eval.pytest_plugin import assert_iris

def test_passes(iris):
    assert_iris("The refund was approved and posts within five business days.", input="Was the refund approved?", eval_type="safety", client=iris)

def test_fails(iris):
    with pytest.raises(AssertionError, match="detector_veto by no_pii"):
        assert_iris("Her social security number is 536-22-8716.", client=iris)
'''


def the_pytest_plugin(binary):
    with sidecar.sidecar(binary) as running, tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
        opened(running)
        pathlib.Path(folder, "test_agent.py").write_text(PLUGIN)
        # Found by runtime.json, as a user's would be.
        env = {name: value for name, value in os.environ.items() if not name.startswith("IRIS_")}
        env |= {"IRIS_HOME": str(running.home), "IRIS_REQUIRE": "1"}
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", folder], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


if __name__ == "__main__":
    sidecar.main(
        the_sync_client,
        the_async_client_with_a_key,
        the_recorder_is_answered_with_verdicts,
        the_langchain_handler,
        the_pytest_plugin,
    )
