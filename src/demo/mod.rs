//! Captured traffic of real instrumentations, carried in the binary, and a player that sends it through a real door.

use std::time::Duration;

use anyhow::Context;

/// One program's run: the requests its instrumentation sent, in order.
pub struct Capture {
    /// The library and its instrumentation.
    pub sdk: &'static str,
    /// What the program did.
    pub story: &'static str,
    /// OTLP/HTTP path and protobuf body of each request.
    pub requests: &'static [(&'static str, &'static [u8])],
}

macro_rules! capture {
    ($sdk:literal, $story:literal, $folder:literal, [$(($path:literal, $file:literal)),+]) => {
        Capture {
            sdk: $sdk,
            story: $story,
            requests: &[$(($path, include_bytes!(concat!("captures/", $folder, "/", $file)))),+],
        }
    };
}

/// What the demo plays.
pub const CAPTURES: &[Capture] = &[
    capture!(
        "LangGraph, OpenInference",
        "answers with a tool",
        "openinference-langchain.tool_ok",
        [("/v1/traces", "001.pb")]
    ),
    capture!(
        "LangGraph, OpenInference",
        "leaks a contact card",
        "openinference-langchain.pii",
        [("/v1/traces", "001.pb")]
    ),
    capture!(
        "LlamaIndex, OpenInference",
        "leaks a contact card",
        "openinference-llamaindex.pii",
        [("/v1/traces", "001.pb")]
    ),
    capture!(
        "LangGraph, OTel GenAI",
        "calls two tools at once",
        "otel-genai-langchain.parallel",
        [("/v1/traces", "001.pb")]
    ),
    capture!("LangGraph, OTel GenAI", "a tool raises", "otel-genai-langchain.tool_error", [("/v1/traces", "001.pb")]),
    capture!(
        "CrewAI, OpenInference",
        "answers a question",
        "openinference-crewai_llm.qa",
        [("/v1/traces", "001.pb"), ("/v1/traces", "002.pb")]
    ),
    capture!("Anthropic, OpenInference", "one model call", "openinference-anthropic.qa", [("/v1/traces", "001.pb")]),
    capture!(
        "Google ADK, OpenInference",
        "answers a question",
        "openinference-google-adk.qa",
        [("/v1/logs", "001.logs.pb"), ("/v1/traces", "002.pb")]
    ),
    capture!(
        "Pydantic AI, OpenInference",
        "answers with a tool",
        "openinference-pydantic-ai.tool_ok",
        [("/v1/traces", "001.pb")]
    ),
    capture!(
        "OpenAI, OTel GenAI",
        "content capture is off",
        "otel-openai-v2_latest_no_content.qa",
        [("/v1/traces", "001.pb")]
    ),
    capture!(
        "LangGraph, OpenInference",
        "two agents in one trace",
        "edge-cases.two_agents_one_trace",
        [("/v1/traces", "001.pb")]
    ),
];

/// Sends every capture to the OTLP/HTTP door at `address`, as an exporter would.
///
/// # Errors
/// When a request is not acknowledged.
pub async fn play(address: &str) -> anyhow::Result<usize> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).no_proxy().build()?;
    let mut sent = 0;
    for capture in CAPTURES {
        for (path, body) in capture.requests {
            let request =
                client.post(format!("http://{address}{path}")).header("content-type", "application/x-protobuf");
            let reply = request.body(*body).send().await.with_context(|| format!("the OTLP door at {address}"))?;
            anyhow::ensure!(reply.status().is_success(), "the OTLP door answered {} to {path}", reply.status());
            sent += 1;
        }
    }
    Ok(sent)
}
