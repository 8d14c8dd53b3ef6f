use super::run::hold;

#[test]
fn otlp_protobuf() {
    hold("otlp_protobuf", &["otlp/good"], &["\x0a", "\x12", "gen_ai.output.messages"], super::otlp_protobuf);
}

#[test]
fn otlp_json() {
    let words =
        ["\"resourceSpans\"", "\"spans\":[", "\"traceId\"", "\"stringValue\"", "null", "1e400", "\\ud800", "-0"];
    hold("otlp_json", &["otlp/good"], &words, super::otlp_json);
}

#[test]
fn json_salvage() {
    hold("json_salvage", &[], &["{\"", "\\u00e9", "\\\\\"", "[[", "null", "1e400", "\"}"], super::json_salvage);
}

#[test]
fn python_repr() {
    hold("python_repr", &[], &["None", "True", "{'", "(", "content='", " object at 0x", "\\'"], super::python_repr);
}

#[test]
fn address() {
    let words = ["http://", "https:", "//", "\\\\", "@", "0x7f", "[::ffff:", "%31", "127.1", ".", "xn--", "doi:10.1/"];
    hold("address", &["citation"], &words, super::address);
}

#[test]
fn tool_arguments() {
    let words = ["\"output\"", "\"tool_calls\":[", "\"trace_id\"", "{\"", "[[", "1e400", "\"definition\":{"];
    hold("tool_arguments", &[], &words, super::tool_arguments);
}
