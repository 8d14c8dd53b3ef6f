"""SDKs of others against the real sidecar, set up with the very variables and lines of docs/first-trace.md. The model is a fake on loopback."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "clients"))

import fake_model
import node
import page
import sidecar
from sidecar import until

QUESTION = "How warm is it in Porto Vell?"
STEP_2 = "2. Point the agent at it"

# No SDK may tell its makers of these runs, nor look for prices or models on the network.
QUIET = {
    "AGENT_FRAMEWORK_USER_AGENT_DISABLED": "true",
    "AI_SDK_TELEMETRY_DISABLED": "1",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_PROXY": "127.0.0.1",
    "OPENLIT_PRICING_JSON": os.devnull,
    "TRACELOOP_TELEMETRY": "false",
}

TOOL = '''
def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: its name
    """
    return "18 degrees"
'''

# One call of OpenAI's client, which knows of no agents and no tools it runs.
ONE_CALL = f"""
from openai import OpenAI

OpenAI().chat.completions.create(model="harbor-1", messages=[{{"role": "user", "content": "{QUESTION}"}}])
"""

OPENAI_AGENTS = f"""
from agents import Agent, Runner, function_tool

agent = Agent(name="harbor_guide", model="harbor-1", tools=[function_tool(get_weather)])
print(Runner.run_sync(agent, "{QUESTION}").final_output)
"""

LANGCHAIN = f"""
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

agent = create_agent(ChatOpenAI(model="harbor-1"), tools=[get_weather], name="harbor_guide")
agent.invoke({{"messages": [{{"role": "user", "content": "{QUESTION}"}}]}})
"""

SMOLAGENTS = f"""
import os
from smolagents import OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel("harbor-1", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
ToolCallingAgent(tools=[tool(get_weather)], model=model, name="harbor_guide", description="Knows the harbor.").run("{QUESTION}")
"""

TRACELOOP = f"""
from openai import OpenAI
from traceloop.sdk.decorators import agent, tool

get_weather = tool(name="get_weather")(get_weather)

@agent(name="harbor_guide")
def harbor_guide(question):
    get_weather("Porto Vell")
    said = OpenAI().chat.completions.create(model="harbor-1", messages=[{{"role": "user", "content": question}}])
    return said.choices[0].message.content

harbor_guide("{QUESTION}")
"""

STRANDS = f"""
from strands import Agent, tool
from strands.models.openai import OpenAIModel

agent = Agent(model=OpenAIModel(model_id="harbor-1"), tools=[tool(get_weather)], name="harbor_guide", callback_handler=None)
agent("{QUESTION}")
"""

LITELLM = f"""
litellm.completion(model="openai/harbor-1", messages=[{{"role": "user", "content": "{QUESTION}"}}])
"""

HAYSTACK = f"""
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function

agent = Agent(chat_generator=OpenAIChatGenerator(model="harbor-1"), tools=[create_tool_from_function(get_weather)])
agent.run(messages=[ChatMessage.from_user("{QUESTION}")])
"""

# The model and the prompt that the page's call of generateText takes.
VERCEL = f"""
import {{ createOpenAI }} from "@ai-sdk/openai";
import {{ generateText }} from "ai";

const prompt = "{QUESTION}";
const model = createOpenAI().chat("harbor-1");
"""

AGENT_FRAMEWORK = f"""
import asyncio
from agent_framework.openai import OpenAIChatClient

agent = OpenAIChatClient(model="harbor-1").as_agent(name="harbor_guide", tools=[get_weather])
print(asyncio.run(agent.run("{QUESTION}")))
"""


def surroundings(running, model, named):
    """The variables of a reader who has followed step 2 of the page and a section, with the addresses of this run."""
    ours = ("OTEL_", "IRIS_", "OPENAI_", "LANGSMITH_", "LANGFUSE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | QUIET | {"OPENAI_BASE_URL": model, "OPENAI_API_BASE": model, "OPENAI_API_KEY": "sk-local"} | {
        name: here(running, value) for name, value in named.items()
    }


def here(running, text):
    """The page's addresses, as those of this sidecar."""
    return text.replace("127.0.0.1:4318", running.runtime["http"]).replace("127.0.0.1:4317", running.runtime["grpc"])


def run(binary, program, named=None, provider=True, **expected):
    """Runs a program in a process of its own, as its user would, and checks what arrived."""
    before = page.lines(STEP_2) if provider else ""
    after = "\nprovider.shutdown()\n" if provider else ""
    variables = page.exports(STEP_2) | (named or {})
    with fake_model.model() as model, sidecar.sidecar(binary) as running:
        env = surroundings(running, model, variables)
        with tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
            # A file and not an argument: some SDKs read the source of a tool.
            file = pathlib.Path(folder, "agent.py")
            file.write_text(here(running, before + program + after))
            done = subprocess.run([sys.executable, file], env=env, cwd=folder, timeout=300, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        check(running, **expected)


def check(running, tools=(), agent="harbor_guide", tokens=None):
    """One trace: the agent, what it was asked and answered, its tools, its tokens, and a verdict."""

    def probe():
        traces = [trace for trace in running.traces() if not trace["in_progress"]]
        return traces if traces and all(trace.get("evaluation_id") for trace in traces) else None

    try:
        traces = until("a trace is settled and judged", 60, probe)
    except AssertionError as error:
        raise AssertionError(f"{error}; there are {running.traces()}") from error
    assert len(traces) == 1, traces
    trace = traces[0]
    assert trace["agent_name"] == agent, trace
    assert QUESTION in (trace["input"] or "") and fake_model.ANSWER in (trace["output"] or ""), trace
    assert [call["tool_name"] for call in trace["tool_calls"] or []] == list(tools), trace["tool_calls"]
    if tokens:
        used = trace["token_usage"]
        assert (used["prompt_tokens"], used["completion_tokens"]) == tuple(count * tokens for count in fake_model.TOKENS), used
    assert trace["verdict"]["state"] == "pass", trace["verdict"]


def openai_client_by_opentelemetrys_own_instrumentation(binary):
    title = "OpenAI client, by OpenTelemetry's own instrumentation"
    run(binary, page.lines(title) + ONE_CALL, page.exports(title), agent="my-agent", tokens=1)


def openai_agents_sdk(binary):
    run(binary, page.lines("OpenAI Agents SDK") + TOOL + OPENAI_AGENTS, tools=["get_weather"], tokens=2)


def openinference(library):
    lines = page.lines("LangChain, LangGraph, CrewAI, LlamaIndex and others, by OpenInference")
    return lines.replace("langchain", library).replace("LangChain", library.capitalize()) if library != "langchain" else lines


def langchain_by_openinference(binary):
    run(binary, openinference("langchain") + TOOL + LANGCHAIN, tools=["get_weather"], tokens=2)


def smolagents_by_openinference(binary):
    run(binary, openinference("smolagents") + TOOL + SMOLAGENTS, tools=["get_weather"], tokens=2)


def openllmetry(binary):
    run(binary, page.lines("OpenLLMetry (Traceloop)") + TOOL + TRACELOOP, provider=False, tools=["get_weather"], tokens=1)


def strands_agents(binary):
    run(binary, page.lines("Strands Agents") + TOOL + STRANDS, provider=False, tools=["get_weather"], tokens=2)


def litellm(binary):
    variables, code = page.row("LiteLLM")
    run(binary, "import litellm\n" + code + LITELLM, variables, provider=False, agent="my-agent", tokens=1)


def openlit(binary):
    variables, code = page.row("OpenLIT")
    run(binary, "import openlit\n" + code + ONE_CALL, variables, provider=False, agent="my-agent", tokens=1)


def haystack(binary):
    variables, code = page.row("Haystack")
    run(binary, code + TOOL + HAYSTACK, variables, agent="my-agent", tools=["get_weather"], tokens=2)


def microsoft_agent_framework(binary):
    variables, code = page.row("Microsoft Agent Framework")
    run(binary, code + TOOL + AGENT_FRAMEWORK, variables, provider=False, tools=["get_weather"], tokens=2)


def from_npm():
    """The folder of the packages from npm. Ends the program when they cannot be had."""
    packages = {"ai": "7.0.173", "@ai-sdk/openai": "4.0.118", "@ai-sdk/otel": "1.0.173"}
    packages |= {"@opentelemetry/sdk-node": "0.301.0", "@opentelemetry/exporter-trace-otlp-proto": "0.301.1"}
    return node.install("vercel-ai", *(f"{name}@{version}" for name, version in packages.items()))


def vercel_ai_sdk(binary):
    """Node, which is another language: the variables of step 2 are the same."""
    folder = from_npm()
    with fake_model.model() as model, sidecar.sidecar(binary) as running, tempfile.TemporaryDirectory(prefix="iris-test-") as home:
        pathlib.Path(home, "node_modules").symlink_to(folder / "node_modules")
        file = pathlib.Path(home, "agent.mjs")
        file.write_text(VERCEL + page.lines("Vercel AI SDK", "js"))
        env = surroundings(running, model, page.exports(STEP_2))
        done = subprocess.run([node.node(), file], env=env, cwd=home, timeout=300, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        check(running, agent="my-agent", tokens=1)


def at_once(*tests):
    """The same tests, three of them running at a time: most of each is waiting. The seconds told are those that were waited for it still."""
    pool = concurrent.futures.ThreadPoolExecutor(3)
    binary = os.path.abspath(sys.argv[1])

    def started(test):
        running = pool.submit(test, binary)

        def result(_):
            return running.result()

        result.__name__ = test.__name__
        return result

    return [started(test) for test in tests]


PYTHON = (
    openlit,
    openllmetry,
    litellm,
    openai_client_by_opentelemetrys_own_instrumentation,
    openai_agents_sdk,
    langchain_by_openinference,
    smolagents_by_openinference,
    strands_agents,
    haystack,
    microsoft_agent_framework,
)

if __name__ == "__main__":
    tests = list(PYTHON)
    try:
        from_npm()
        tests.append(vercel_ai_sdk)
    except SystemExit:
        print("test vercel_ai_sdk ... skipped: its packages cannot be had from npm", flush=True)
    sidecar.main(*at_once(*tests))
