"""A model on loopback that speaks OpenAI's two APIs. It asks for the tool it is offered, then answers. Standard library only."""

import contextlib
import http.server
import itertools
import json
import threading

ANSWER = "It is 18 degrees in Porto Vell."
ARGUMENTS = json.dumps({"city": "Porto Vell"})
TOOL_SAID = "18 degrees"
TOKENS = (40, 7)
# Two replies of one id are one call that was reported twice.
NUMBERS = itertools.count(1)


def next_call(offered, answered):
    """The name and arguments of the tool to ask for now, or nothing when it is time to answer."""
    if "get_weather" in offered and not answered:
        return "get_weather", ARGUMENTS
    # An agent of smolagents answers by a tool.
    return ("final_answer", json.dumps({"answer": ANSWER})) if "final_answer" in offered else None


def chat(asked):
    """The reply of /chat/completions."""
    offered = [tool["function"]["name"] for tool in asked.get("tools") or []]
    call = next_call(offered, TOOL_SAID in json.dumps(asked["messages"]))
    message = {"role": "assistant", "content": None if call else ANSWER}
    if call:
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": {"name": call[0], "arguments": call[1]}}]
    usage = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1], "total_tokens": sum(TOKENS)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    return {"id": f"chatcmpl-{next(NUMBERS)}", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [choice], "usage": usage}


def chunks(reply):
    """The same reply as a stream."""
    whole, usage = reply["choices"][0], reply.pop("usage")
    delta = dict(whole["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [call | {"index": 0} for call in delta["tool_calls"]]
    head = reply | {"object": "chat.completion.chunk"}
    yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": whole["finish_reason"]}]}
    yield head | {"choices": [], "usage": usage}


def response(asked):
    """The reply of /responses."""
    offered = [tool.get("name") for tool in asked.get("tools") or []]
    said = asked["input"] if isinstance(asked["input"], list) else []
    call = next_call(offered, TOOL_SAID in json.dumps(said))
    text = {"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    if call:
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": call[0], "arguments": call[1], "status": "completed"}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{next(NUMBERS)}", "object": "response", "created_at": 1, "status": "completed", "model": asked["model"], "output": [item],
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": asked.get("tools") or [], "error": None, "incomplete_details": None,
        "usage": {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1], "total_tokens": sum(TOKENS)} | details,
    }


class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            reply = chat(asked)
        elif self.path.endswith("/responses"):
            reply = response(asked)
        else:
            return self.send_error(404)
        if asked.get("stream"):
            assert "choices" in reply, "only chat completions are streamed"
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(reply)]
            return self.say("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))
        return self.say("application/json", json.dumps(reply))

    def say(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def model():
    """The address of a running model, as the base of OpenAI's APIs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
