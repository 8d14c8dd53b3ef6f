"""The real Python SDK of OpenTelemetry against the real sidecar: whole runs become whole traces, whatever the processor."""

import json
import sys
import threading
import time

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import sidecar
from sidecar import until


def words(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def run_agent(processor, step_seconds, steps=3):
    """An agent of several steps, each a model call and a tool, written as the GenAI conventions say. Gives the trace id."""
    provider = TracerProvider(resource=Resource.create({"service.name": "harbor-service"}))
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("harbor.instrumentation")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "harbor_guide"}
    with tracer.start_as_current_span("invoke_agent harbor_guide", attributes=agent) as root:
        root.set_attribute("gen_ai.input.messages", words("user", "How warm is it in Porto Vell?"))
        for step in range(steps):
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "harbor-1",
                "gen_ai.provider.name": "openai",
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                "gen_ai.input.messages": words("user", "How warm is it in Porto Vell?"),
                "gen_ai.output.messages": words("assistant", f"step {step}"),
            }
            with tracer.start_as_current_span("chat harbor-1", attributes=attributes):
                time.sleep(step_seconds / 2)
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": f"call_{step}",
                "gen_ai.tool.call.arguments": json.dumps({"city": "Porto Vell", "step": step}),
                "gen_ai.tool.call.result": json.dumps({"celsius": 18}),
            }
            with tracer.start_as_current_span("execute_tool get_weather", attributes=attributes):
                time.sleep(step_seconds / 2)
        root.set_attribute("gen_ai.output.messages", words("assistant", "It is 18 C in Porto Vell."))
        trace_id = format(root.get_span_context().trace_id, "032x")
    provider.shutdown()
    return trace_id


def settled(running, trace_id, seconds):
    def probe():
        detail = running.trace(trace_id)
        return detail if detail and not detail["trace"]["in_progress"] and detail["evals"] else None

    return until("the trace is settled and judged", seconds, probe)


def check(running, trace_id):
    """One trace, one settled evaluation, everything understood; and nothing more comes later."""
    detail = settled(running, trace_id, 30)
    trace = detail["trace"]
    assert [one["trace_id"] for one in running.traces()] == [trace_id], "one trace"
    assert len(detail["evals"]) == 1, f"{len(detail['evals'])} evaluations"
    assert detail["evals"][0]["verdict"]["state"] == "pass", detail["evals"][0]["verdict"]
    assert trace["agent_name"] == "harbor_guide" and trace["output"] == "It is 18 C in Porto Vell.", trace
    assert trace["input"] == "How warm is it in Porto Vell?", trace["input"]
    assert len(trace["tool_calls"]) == 3 and trace["token_usage"]["prompt_tokens"] == 300, trace
    assert len(detail["spans"]) == 7, f"{len(detail['spans'])} spans"
    assert trace["version"] == 1, f"version {trace['version']}"


def batch_processor_with_a_run_of_twelve_seconds(binary):
    with sidecar.sidecar(binary) as running:
        exporter = GrpcExporter(endpoint=f"http://{running.runtime['grpc']}", insecure=True)
        check(running, run_agent(BatchSpanProcessor(exporter), 4))


def simple_processor_with_a_run_of_twelve_seconds(binary):
    with sidecar.sidecar(binary) as running:
        exporter = HttpExporter(endpoint=f"http://{running.runtime['http']}/v1/traces")
        check(running, run_agent(SimpleSpanProcessor(exporter), 4))


def ninety_seconds_of_silence_make_one_trace_and_no_fail_that_counts(binary):
    with sidecar.sidecar(binary) as running:
        exporter = HttpExporter(endpoint=f"http://{running.runtime['http']}/v1/traces")
        seen, done = [], threading.Event()

        def watch():
            while not done.wait(1):
                for trace in running.traces():
                    seen.append((trace["in_progress"], (trace["verdict"] or {}).get("state")))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            trace_id = run_agent(BatchSpanProcessor(exporter), 90, steps=1)
            detail = settled(running, trace_id, 30)
        finally:
            done.set()
            watcher.join()
        assert len(detail["evals"]) == 1 and detail["evals"][0]["verdict"]["state"] == "pass", detail["evals"]
        assert len(running.traces()) == 1
        assert not any(state == "fail" for _, state in seen), f"a fail was shown: {set(seen)}"
        assert all(open_ for open_, _ in seen[:-3]), "it was shown as ended before it had"


if __name__ == "__main__":
    sidecar.main(
        batch_processor_with_a_run_of_twelve_seconds,
        simple_processor_with_a_run_of_twelve_seconds,
        ninety_seconds_of_silence_make_one_trace_and_no_fail_that_counts,
    )
