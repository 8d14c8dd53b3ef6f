"""Real MCP clients against the real sidecar: the same answers over streamable HTTP, over stdio, and over HTTP without MCP."""

import asyncio
import json
import os
import subprocess
import urllib.request

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

import sidecar
from sidecar import until

TOOLS = [
    "log_trace", "evaluate_output", "get_traces", "list_rules", "deploy_rule", "delete_rule", "delete_trace", "evaluate_with_llm_judge",
    "verify_citations",
]
LEAK = "Her social security number is 536-22-8716."


def http_tool(running, name, arguments):
    request = urllib.request.Request(
        f"http://{running.runtime['web']}/api/v1/tools/{name}",
        data=json.dumps(arguments).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.loads(reply.read())


async def walk(client):
    """Stores, judges, finds, lists; and is refused where it should be."""
    async with client:
        assert [tool.name for tool in await client.list_tools()] == TOOLS
        stored = (await client.call_tool("log_trace", {"agent_name": "clerk", "input": "Who is she?", "output": LEAK})).structured_content
        judged = (await client.call_tool("evaluate_output", {"trace_id": stored["trace_id"]})).structured_content
        assert judged["verdict"]["state"] == "fail" and judged["critical_failures"] == ["no_pii"], judged["verdict"]
        assert LEAK[30:40] not in json.dumps(judged), "a found value stands in the reply"
        found = (await client.call_tool("get_traces", {"trace_id": stored["trace_id"]})).structured_content
        assert found["total"] == 1 and found["traces"][0]["output"] == LEAK
        assert found["traces"][0]["evaluation_id"] == judged["id"]
        rules = (await client.call_tool("list_rules", {})).structured_content
        assert "no_pii" in [rule["name"] for rule in rules["built_in"]]
        refused = await client.call_tool("evaluate_output", {"output": "x", "eval_typ": "safety"}, raise_on_error=False)
        error = json.loads(refused.content[0].text)["error"]
        assert refused.is_error and error["code"] == "IRIS_INVALID_ARGUMENT" and "eval_type" in error["valid"], error
        unknown = await client.call_tool("evaluate_output", {"trace_id": "0" * 31 + "1"}, raise_on_error=False)
        assert json.loads(unknown.content[0].text)["error"]["code"] == "IRIS_UNKNOWN_TRACE"
        assert str(unknown.content[1].uri) == "iris://capabilities"
        paid = await client.call_tool("verify_citations", {"output": "See [1].", "model": "gpt-4o"}, raise_on_error=False)
        error = json.loads(paid.content[0].text)["error"]
        assert error["code"] == "IRIS_JUDGE_NOT_ENABLED" and any("IRIS_OPENAI_API_KEY" in step for step in error["recovery"]), error
        await resources(client, judged)
        return judged


async def resources(client, judged):
    """What can be read by address, and the prompt."""
    fixed = {str(one.uri) for one in await client.list_resources()}
    assert fixed == {"iris://capabilities", "iris://proof", "iris://dashboard/summary"}, fixed
    families = {one.uriTemplate if hasattr(one, "uriTemplate") else one.uri_template for one in await client.list_resource_templates()}
    assert families == {"iris://traces/{trace_id}", "iris://evaluations/{id}"}, families

    async def read(uri):
        return json.loads((await client.read_resource(uri))[0].text)

    again = await read(f"iris://evaluations/{judged['id']}")
    assert again["verdict"] == judged["verdict"] and again["rule_results"] == judged["rule_results"]
    assert (await read(f"iris://traces/{judged['trace_id']}"))["trace"]["output"] == LEAK
    assert (await read("iris://dashboard/summary"))["total_traces"] >= 1
    measured = await read("iris://proof")
    assert "no_pii" in json.dumps(measured), list(measured)
    listed = await client.call_tool("list_rules", {})
    assert str(listed.content[1].uri) == "iris://proof", listed.content[1:]
    piece = (await client.call_tool("get_traces", {"trace_id": judged["trace_id"], "part": "/output", "part_offset": 4})).structured_content
    assert piece["part"]["text"] == LEAK[4:], piece["part"]
    able = await read("iris://capabilities")
    assert able["tools"] == TOOLS and able["judge"]["enabled"] is False, able
    try:
        await read("iris://evaluations/nobody")
    except Exception as error:
        assert "nothing is at that address" in str(error), error
    else:
        raise AssertionError("an unknown evaluation was read")
    prompts = await client.list_prompts()
    assert [prompt.name for prompt in prompts] == ["evaluate-my-agent"]
    told = await client.get_prompt("evaluate-my-agent", {"what": "trace-file"})
    assert "log_trace" in told.messages[0].content.text


def opened(running):
    until("the store is open", 30, lambda: sidecar.get(f"http://{running.runtime['web']}/api/v1/health")[0] == 200)


def over_http(binary):
    with sidecar.sidecar(binary) as running:
        opened(running)
        asyncio.run(walk(Client(f"http://{running.runtime['web']}/mcp")))


def over_stdio_through_the_running_sidecar(binary):
    with sidecar.sidecar(binary) as running:
        opened(running)
        transport = StdioTransport(command=binary, args=["mcp"], env=os.environ | {"IRIS_HOME": str(running.home)})
        judged = asyncio.run(walk(Client(transport)))
        again = http_tool(running, "get_traces", {"trace_id": judged["trace_id"]})
        assert again["traces"][0]["evaluation_id"] == judged["id"], "the bridge and the web door see the same store"


def over_stdio_alone(binary):
    import tempfile

    with tempfile.TemporaryDirectory(prefix="iris-test-") as home:
        transport = StdioTransport(command=binary, args=["mcp"], env=os.environ | {"IRIS_HOME": f"{home}/home"})
        asyncio.run(walk_when_open(transport))


async def walk_when_open(transport):
    """Without a sidecar the process opens the store itself; a call before that says so and may be repeated."""
    client = Client(transport)
    async with client:
        for _ in range(300):
            reply = await client.call_tool("get_traces", {}, raise_on_error=False)
            if not reply.is_error:
                break
            error = json.loads(reply.content[0].text)["error"]
            assert error["code"] == "IRIS_STORAGE_ERROR" and error["retryable"], error
            await asyncio.sleep(0.1)
        stored = (await client.call_tool("log_trace", {"agent_name": "clerk", "output": LEAK})).structured_content
        judged = (await client.call_tool("evaluate_output", {"trace_id": stored["trace_id"]})).structured_content
        assert judged["verdict"]["state"] == "fail", judged["verdict"]


async def walk_the_sdk(client):
    async with client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS and all(tool.description for tool in tools)
        reply = await client.call_tool("log_trace", {"agent_name": "sdk", "output": "fine"})
        assert reply.structured_content["status"] == "stored", reply
        return client.protocol_version


def the_official_sdk_in_both_eras(binary):
    """The SDK asks a server which era it speaks, or is told."""
    from mcp import Client as SdkClient

    with sidecar.sidecar(binary) as running:
        opened(running)
        url = f"http://{running.runtime['web']}/mcp"
        spoken = [asyncio.run(walk_the_sdk(SdkClient(url, mode=mode))) for mode in ("auto", "legacy", "2026-07-28")]
        assert spoken[0] == spoken[2] == "2026-07-28" and spoken[1] == "2025-11-25", spoken


INSPECTOR = ("@modelcontextprotocol/inspector", "2.12.0", "clients/cli/build/index.js")


def first(output):
    """The first JSON value of what was printed."""
    return json.JSONDecoder().raw_decode(output[output.index("{"):])[0]


def the_inspector(binary):
    import node

    with sidecar.sidecar(binary) as running:
        opened(running)
        cli = [node.package(*INSPECTOR), f"http://{running.runtime['web']}/mcp", "--transport", "http"]
        code, output = node.run([*cli, "--method", "tools/list"], 60)
        assert code == 0 and [tool["name"] for tool in first(output)["tools"]] == TOOLS, output[:2000]
        call = ["--method", "tools/call", "--tool-name", "evaluate_output", "--tool-arg", f"output={LEAK}"]
        code, output = node.run([*cli, *call], 60)
        assert code == 0 and first(output)["structuredContent"]["critical_failures"] == ["no_pii"], output


def over_plain_http(binary):
    with sidecar.sidecar(binary) as running:
        opened(running)
        stored = http_tool(running, "log_trace", {"agent_name": "clerk", "output": LEAK})
        judged = http_tool(running, "evaluate_output", {"trace_id": stored["trace_id"]})
        assert judged["verdict"]["state"] == "fail"


def an_evil_host_or_origin_is_refused(binary):
    with sidecar.sidecar(binary) as running:
        url = f"http://{running.runtime['web']}/api/v1/traces"
        assert sidecar.get(url, {"Host": "evil.example"})[0] == 403
        assert sidecar.get(url, {"Origin": "https://evil.example"})[0] == 403
        assert sidecar.get(url, {"Origin": "null"})[0] == 403


def a_key_is_needed_once_it_is_set(binary):
    with sidecar.sidecar(binary, {"IRIS_API_KEY": "0123456789"}) as running:
        url = f"http://{running.runtime['web']}/api/v1/tools"
        assert sidecar.get(url)[0] == 401
        assert sidecar.get(url, {"Authorization": "Bearer wrong"})[0] == 403
        assert sidecar.get(url, {"Authorization": "Bearer 0123456789"})[0] == 200


def a_second_sidecar_on_the_same_home_names_the_first(binary):
    with sidecar.sidecar(binary) as running:
        env = os.environ | sidecar.DOORS | {"IRIS_HOME": str(running.home)}
        done = subprocess.run([binary, "serve"], env=env, capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and f"pid {running.process.pid}" in done.stderr, done.stderr


if __name__ == "__main__":
    sidecar.main(
        over_http,
        over_stdio_through_the_running_sidecar,
        over_stdio_alone,
        the_official_sdk_in_both_eras,
        the_inspector,
        over_plain_http,
        an_evil_host_or_origin_is_refused,
        a_key_is_needed_once_it_is_set,
        a_second_sidecar_on_the_same_home_names_the_first,
    )
