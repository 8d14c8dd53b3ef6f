//! How long reading a span takes: `cargo test -p iris-core --release reading_is_quick -- --ignored --nocapture`.

use super::*;

/// The most a span may take on average, in microseconds, on a machine of two cores at 2 GHz or more.
const MICROS_MAX: f64 = 4.0;
/// Rounds, of which the quickest counts: what else the machine does is left out.
const ROUNDS: u32 = 400;
/// How often a round reads all spans.
const TIMES: u32 = 50;

fn words(bytes: usize) -> String {
    let words = "the order is on its way and arrives before noon at the north pier ".repeat(bytes / 60 + 1);
    words[..bytes].to_owned()
}

fn said(role: &str, bytes: usize) -> Value {
    json!(json!([{"role": role, "parts": [{"type": "text", "content": words(bytes)}]}]).to_string())
}

/// A trace of eight spans of about 1.4 KB: a run, two tools, five model calls.
fn spans() -> Vec<RawSpan> {
    let scope = "opentelemetry.instrumentation.openai_v2";
    let run = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot-7",
        "gen_ai.conversation.id": "00f067aa0ba902b7", "gen_ai.input.messages": said("user", 300),
        "gen_ai.output.messages": said("assistant", 700)});
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_orders",
        "gen_ai.tool.call.id": "call_00f067aa0ba902b7", "gen_ai.tool.call.arguments": json!({"query": words(200)}).to_string(),
        "gen_ai.tool.call.result": json!({"rows": words(850)}).to_string()});
    let call = json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.response.id": "chatcmpl-00f067aa0ba902b7",
        "gen_ai.usage.input_tokens": 2100, "gen_ai.usage.output_tokens": 410, "gen_ai.request.temperature": 0.2,
        "gen_ai.input.messages": said("user", 450), "gen_ai.output.messages": said("assistant", 400)});
    let of = |at: usize| match at {
        0 => span("invoke_agent support-bot", scope, &run),
        3 | 5 => span("execute_tool search_orders", scope, &tool),
        _ => span("chat gpt-4o", scope, &call),
    };
    (0..8).map(of).collect()
}

#[test]
#[ignore = "measures time"]
#[expect(clippy::print_stderr, reason = "a measurement by hand")]
fn reading_is_quick() {
    let spans = spans();
    let round = || {
        #[expect(clippy::disallowed_methods, reason = "a test may measure")]
        let begun = std::time::Instant::now();
        for _ in 0..TIMES {
            for span in &spans {
                std::hint::black_box(read_span(std::hint::black_box(span)));
            }
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES) / 8.0
    };
    let micros = (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min);
    eprintln!("{micros:.2} us a span");
    assert!(cfg!(debug_assertions) || micros <= MICROS_MAX, "{micros:.2} us a span, at most {MICROS_MAX}");
}
