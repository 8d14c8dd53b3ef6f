"""Two tenants whose traces, spans and evaluations have the same ids: through every door, nothing crosses."""

import json
import pathlib
import urllib.error
import urllib.request

import sidecar
from sidecar import until

TRACE, ROOT, UNKNOWN = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7", "1" * 32
KEYS = """
mcp: {sql: true}
keys:
  - {name: red, key: red-key-0123456789, tenant: red, scopes: [read, write, admin]}
  - {name: blue, key: blue-key-0123456789, tenant: blue, scopes: [read, write, judge, admin]}
  - {name: looker, key: looker-key-0123456789, tenant: red, scopes: [read]}
"""
#: What is asked of the store in a tenant's own words; some of it is refused, none of it crosses.
SQL = [
    "SELECT * FROM traces",
    "SELECT * FROM spans UNION ALL BY NAME SELECT * FROM spans",
    "SELECT * FROM evaluations",
    "SELECT output FROM traces WHERE trace_id = '$ID' OR true",
    "SELECT (SELECT string_agg(output, ',') FROM iris.main.traces)",
    "SELECT * FROM traces t, LATERAL (SELECT * FROM traces u WHERE u.trace_id = t.trace_id) x",
    "WITH traces AS (SELECT * FROM traces) SELECT * FROM traces",
    "WITH a AS (SELECT * FROM pieces), pieces AS (SELECT 1) SELECT * FROM a",
    "SELECT output FROM traces EXCEPT SELECT output FROM iris.main.traces",
    "SELECT tenant, output FROM iris.main.traces",
]
MINE = {"red": "crimson answer of the first house", "blue": "azure answer of the second house"}


def ask(url, key=None, body=None, kind="application/json"):
    """Status and JSON of a request as `key`."""
    headers = {"content-type": kind, "accept": "application/json, text/event-stream"}
    if key:
        headers["authorization"] = f"Bearer {key}-key-0123456789"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers), timeout=20) as reply:
            return reply.status, json.loads(reply.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def messages(asked, answered):
    def said(role, text):
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    return [("gen_ai.input.messages", said("user", asked)), ("gen_ai.output.messages", said("assistant", answered))]


def spans(tenant):
    attributes = [("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", f"clerk-{tenant}"), *messages("Who?", MINE[tenant])]
    span = {
        "traceId": TRACE, "spanId": ROOT, "name": "invoke_agent", "kind": 1, "startTimeUnixNano": "1767323045000000000", "endTimeUnixNano": "1767323046000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes], "status": {"code": 1},
    }
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "t"}, "spans": [span]}]}]}


def doors(running, key, trace_id, evaluation_id):
    """Every reading of one caller: a name and what came back."""
    web = f"http://{running.runtime['web']}"
    api = f"{web}/api/v1"

    def mcp(method, params):
        return ask(f"{web}/mcp", key, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def tool(name, **arguments):
        return mcp("tools/call", {"name": name, "arguments": arguments})

    yield "traces", ask(f"{api}/traces", key)
    yield "one of traces", ask(f"{api}/traces?trace_id={trace_id}", key)
    yield "trace", ask(f"{api}/traces/{trace_id}", key)
    yield "evaluations", ask(f"{api}/evaluations", key)
    yield "evaluation", ask(f"{api}/evaluations/{evaluation_id}", key)
    yield "summary", ask(f"{api}/summary?hours=8760", key)
    yield "search", ask(f"{api}/traces?q=answer", key)
    yield "get_traces", tool("get_traces", trace_id=trace_id)
    yield "all traces", tool("get_traces", include_summary=True)
    yield "trace resource", mcp("resources/read", {"uri": f"iris://traces/{trace_id}"})
    yield "evaluation resource", mcp("resources/read", {"uri": f"iris://evaluations/{evaluation_id}"})
    yield "summary resource", mcp("resources/read", {"uri": "iris://dashboard/summary"})
    yield "evaluate_output", tool("evaluate_output", trace_id=trace_id)
    yield "evaluate by path", ask(f"{api}/evaluations", key, {"trace_id": trace_id})
    for part in ("", "/output", "/spans", "/spans/0/attributes"):
        yield f"part {part}", tool("get_traces", trace_id=trace_id, part=part)
    for sql in SQL:
        yield sql, tool("query_sql", sql=sql.replace("$ID", trace_id))
        yield f"{sql} by path", ask(f"{api}/tools/query_sql", key, {"sql": sql.replace("$ID", trace_id)})
    yield "sql without a statement", tool("query_sql")
    yield "rules", tool("list_rules")
    yield "custom rules", ask(f"{api}/rules/custom", key)
    yield "audit", ask(f"{api}/audit", key)
    yield "capabilities", ask(f"{api}/capabilities", key)


def nothing_crosses(binary):
    with sidecar.sidecar(binary, keys=KEYS) as running:
        web = f"http://{running.runtime['web']}"
        until("the store is open", 30, lambda: sidecar.get(f"{web}/api/v1/health")[0] == 200)
        for key, door in (("red", f"http://{running.runtime['http']}"), ("blue", web)):
            status, answer = ask(f"{door}/v1/traces", key, spans(key))
            assert status == 200, answer
        mine = {}
        for key in MINE:
            def judged():
                answer = ask(f"{web}/api/v1/traces/{TRACE}", key)[1]
                return answer if answer.get("evals") and not answer["trace"]["in_progress"] else None
            mine[key] = until(f"{key} is judged", 20, judged)
            assert mine[key]["trace"]["output"] == MINE[key] and mine[key]["trace"]["agent_name"] == f"clerk-{key}", mine[key]["trace"]
        for key in MINE:
            rule = {"name": f"rule of {key}", "description": MINE[key], "eval_type": "custom", "definition": {"type": "excludes_keywords", "config": {"keywords": [MINE[key]]}}}
            status, answer = ask(f"{web}/api/v1/tools/deploy_rule", key, rule)
            assert status == 200 and "rule.name" in answer["untrusted"]["fields"], answer
        ids = {key: mine[key]["evals"][0]["id"] for key in MINE}
        assert ids["red"] != ids["blue"], "the tenant is part of what an evaluation id is made of"
        for key, other in (("red", "blue"), ("blue", "red")):
            for name, (status, answer) in doors(running, key, TRACE, ids[key]):
                refused = answer.get("error", {}).get("code") == "IRIS_INVALID_ARGUMENT" if isinstance(answer.get("error"), dict) else False
                assert status in (200, 201) or (refused and "iris.main" in name or "pieces" in name or "BY NAME" in name), (key, name, status, answer)
                text = json.dumps(answer)
                assert MINE[other] not in text and f"clerk-{other}" not in text and f"rule of {other}" not in text, (key, name, text[:2000])
        # Nobody without a key, and no key beyond its scopes.
        for door in (f"http://{running.runtime['http']}", web):
            assert ask(f"{door}/v1/traces", None, spans("red"))[0] == 401
            assert ask(f"{door}/v1/traces", "green", spans("red"))[0] == 403
            assert ask(f"{door}/v1/traces", "looker", spans("red"))[0] == 403
        status, answer = ask(f"{web}/api/v1/traces", "looker", {"agent_name": "a"})
        assert status == 403 and "scope write" in answer["message"], answer
        assert ask(f"{web}/api/v1/traces/{TRACE}", "looker")[1]["trace"]["output"] == MINE["red"]
        status, answer = ask(f"{web}/api/v1/tools/verify_citations", "red", {"output": "x", "model": "m"})
        assert status == 403 and "scope judge" in answer["message"], answer
        assert ask(f"{web}/api/v1/tools/verify_citations", "blue", {"output": "x", "model": "gpt-4o"})[0] == 501


def an_id_of_another_is_an_id_of_nobody(binary):
    with sidecar.sidecar(binary, keys=KEYS) as running:
        web = f"http://{running.runtime['web']}"
        until("the store is open", 30, lambda: sidecar.get(f"{web}/api/v1/health")[0] == 200)
        status, logged = ask(f"{web}/api/v1/traces", "red", {"agent_name": "clerk-red", "output": MINE["red"], "evaluate": True})
        assert status == 201, logged
        foreign, unknown = logged["trace_id"], UNKNOWN
        evaluation = logged["evaluation"]["id"]
        told = zip(doors(running, "blue", foreign, evaluation), doors(running, "blue", unknown, evaluation[:-1] + "x"))
        for (name, theirs), (_, nobodys) in told:
            theirs = json.loads(json.dumps(theirs).replace(foreign, unknown))
            assert theirs == json.loads(json.dumps(nobodys)), (name, theirs, nobodys)


if __name__ == "__main__":
    sidecar.main(nothing_crosses, an_id_of_another_is_an_id_of_nobody)
