//! Spans that carry content and do not say what they are, and steps without calls.

use super::*;

fn bare(input: &str, output: &str) -> Value {
    json!({"input.value": input, "output.value": output})
}

fn told(trace: &Trace) -> (Option<&str>, Option<&str>) {
    (trace.input.as_deref(), trace.output.as_deref())
}

#[test]
fn content_alone_makes_a_run_wherever_it_stands() {
    let root = Sketch::default().span(1, 0, "handle", bare("Where?", "Here.")).trace().unwrap();
    assert_eq!((told(&root), root.runs.len()), ((Some("Where?"), Some("Here.")), 1));
    let below = Sketch::default()
        .span(1, 0, "POST /chat", json!({"http.request.method": "POST"}))
        .span(2, 1, "answer", bare("Where?", "Here."))
        .trace()
        .unwrap();
    assert_eq!((told(&below), below.runs.len()), ((Some("Where?"), Some("Here.")), 1));
    let around = Sketch::default()
        .span(1, 0, "handle", bare("Where?", "Here."))
        .span(2, 1, "chat m", chat("Where is it now?", "It is here.", "r1"))
        .trace()
        .unwrap();
    assert_eq!((told(&around), around.runs.len()), ((Some("Where?"), Some("Here.")), 1));
}

#[test]
fn content_alone_never_speaks_for_what_says_its_role() {
    let inside = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "chat m", chat("Where?", "Here.", "r1"))
        .span(3, 1, "save", bare("row 7", "saved"))
        .trace()
        .unwrap();
    assert_eq!((told(&inside), inside.runs.len()), ((Some("Where?"), Some("Here.")), 1));
    let beside = Sketch::default()
        .span(1, 0, "POST /chat", json!({"http.request.method": "POST"}))
        .span(2, 1, "invoke_agent Guide", agent("Guide"))
        .span(3, 2, "chat m", chat("Where?", "Here.", "r1"))
        .span(4, 1, "save", bare("row 7", "saved"))
        .trace()
        .unwrap();
    assert_eq!((told(&beside), beside.runs.len()), ((Some("Where?"), Some("Here.")), 1));
}

#[test]
fn a_step_that_was_asked_and_answered_is_a_run_when_nothing_else_is() {
    let step = |input: Value, output: Value| json!({"openinference.span.kind": "CHAIN", "input.value": input, "output.value": output});
    let alone = Sketch::default().span(1, 0, "pipeline", step(json!("Where?"), json!("Here."))).trace().unwrap();
    assert_eq!(told(&alone), (Some("Where?"), Some("Here.")));
    let silent = json!({"openinference.span.kind": "CHAIN", "input.value": "Where?"});
    assert!(Sketch::default().span(1, 0, "pipeline", silent).trace().is_none());
    let with_call = Sketch::default()
        .span(1, 0, "prepare", step(json!("a"), json!("b")))
        .span(2, 0, "invoke_agent Guide", agent("Guide"))
        .span(3, 2, "chat m", chat("Where?", "Here.", "r1"))
        .trace()
        .unwrap();
    assert_eq!((told(&with_call), with_call.runs.len()), ((Some("Where?"), Some("Here.")), 1));
}
