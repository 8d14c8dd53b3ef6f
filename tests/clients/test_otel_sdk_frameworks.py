"""Frameworks with tracing of their own against the real sidecar, set up as docs/first-trace.md says. No model is asked."""

import os
import subprocess
import sys

import sidecar
from sidecar import until

PROVIDER = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
"""

BY_HAND = PROVIDER + """
with trace.get_tracer("my-agent").start_as_current_span("harbor_guide") as span:
    span.set_attribute("iris.agent_name", "harbor_guide")
    span.set_attribute("iris.input", "How warm is it in Porto Vell?")
    span.set_attribute("iris.output", "It is 18 degrees in Porto Vell.")
provider.shutdown()
"""

PYDANTIC_AI = PROVIDER + """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

Agent.instrument_all()
agent = Agent(TestModel(custom_output_text="It is 18 degrees in Porto Vell."), name="harbor_guide")

@agent.tool_plain
def get_weather(city: str) -> str:
    return "18 degrees"

agent.run_sync("How warm is it in Porto Vell?")
provider.shutdown()
"""

LANGSMITH = """
from langsmith import Client, traceable

client = Client()

@traceable(run_type="chain", name="harbor_guide", client=client)
def harbor_guide(question):
    return "It is 18 degrees in Porto Vell."

harbor_guide("How warm is it in Porto Vell?")
client.flush()
from opentelemetry import trace
trace.get_tracer_provider().shutdown()
"""

LANGFUSE = """
from langfuse import get_client, observe

@observe(as_type="agent")
def harbor_guide(question):
    return "It is 18 degrees in Porto Vell."

harbor_guide("How warm is it in Porto Vell?")
get_client().flush()
"""


def run(running, program, **settings):
    """Runs a program in a process of its own, as its user would: providers are global and read the environment once."""
    ours = ("OTEL_", "LANGSMITH_", "LANGFUSE_", "IRIS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env = kept | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{running.runtime['http']}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    } | settings
    done = subprocess.run([sys.executable, "-c", program], env=env, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check(running, tools=()):
    """One trace: the agent, what it was asked and answered, its tools, and a verdict that counts."""

    def probe():
        traces = [trace for trace in running.traces() if not trace["in_progress"]]
        return traces if traces and traces[0].get("evaluation_id") else None

    traces = until("a trace is settled and judged", 30, probe)
    assert len(traces) == 1, traces
    trace = traces[0]
    assert trace["agent_name"] == "harbor_guide", trace
    assert "Porto Vell?" in trace["input"] and "18 degrees in Porto Vell." in trace["output"], trace
    assert [call["tool_name"] for call in trace["tool_calls"] or []] == list(tools), trace["tool_calls"]
    assert trace["verdict"]["state"] == "pass", trace["verdict"]


def spans_written_by_hand(binary):
    with sidecar.sidecar(binary) as running:
        run(running, BY_HAND)
        check(running)


def pydantic_ai_with_its_own_test_model(binary):
    with sidecar.sidecar(binary) as running:
        run(running, PYDANTIC_AI)
        check(running, ["get_weather"])


def langsmith_over_opentelemetry(binary):
    settings = {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}
    with sidecar.sidecar(binary) as running:
        run(running, LANGSMITH, **settings)
        check(running)


def langfuse_that_takes_the_sidecar_for_its_server(binary):
    with sidecar.sidecar(binary) as running:
        address = f"http://{running.runtime['http']}"
        settings = {"LANGFUSE_PUBLIC_KEY": "pk-lf-local", "LANGFUSE_SECRET_KEY": "sk-lf-local"}
        run(running, LANGFUSE, LANGFUSE_HOST=address, LANGFUSE_BASE_URL=address, **settings)
        check(running)


if __name__ == "__main__":
    sidecar.main(
        spans_written_by_hand,
        pydantic_ai_with_its_own_test_model,
        langsmith_over_opentelemetry,
        langfuse_that_takes_the_sidecar_for_its_server,
    )
