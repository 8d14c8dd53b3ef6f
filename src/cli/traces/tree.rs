//! One trace for people: who ran and what came of it, its spans as a tree, and what the failed rules saw.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use iris_core::evaluate::Basis;
use iris_core::model::Timestamp;
use serde_json::Value;

use crate::cli::text::{self, Paint, inert, short};

/// Lines of a text that are shown.
const TEXT_LINES_MAX: usize = 12;

/// Columns of one of them.
const TEXT_COLUMNS_MAX: usize = 160;

/// Characters shown on either side of what a rule saw.
const AROUND: usize = 24;

/// How deep spans are drawn beneath each other.
const DEPTH_MAX: usize = 32;

/// Prints what `GET /api/v1/traces/{trace_id}` said.
pub(super) fn print(out: &mut impl Write, detail: &Value, paint: Paint) -> io::Result<()> {
    let trace = &detail["trace"];
    head(out, trace, paint)?;
    for (name, label) in [("input", "Asked"), ("output", "Answered")] {
        if let Some(said) = trace[name].as_str() {
            writeln!(out, "\n{}", paint.faint(label))?;
            said_lines(out, said, paint)?;
        }
    }
    let spans = detail["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !spans.is_empty() {
        writeln!(out, "\n{}", paint.faint("Spans"))?;
        Tree::of(spans).print(out, paint)?;
    }
    if let Some(newest) = detail["evals"].get(0) {
        writeln!(out)?;
        verdict(out, newest, trace, paint)?;
    }
    for cut in detail["truncated"].as_array().map(Vec::as_slice).unwrap_or_default() {
        writeln!(out, "{}", paint.faint(&format!("cut: {}", text::cell(cut, TEXT_COLUMNS_MAX))))?;
    }
    Ok(())
}

fn head(out: &mut impl Write, trace: &Value, paint: Paint) -> io::Result<()> {
    let mut said = vec![text::cell(&trace["timestamp"], 24), text::took(trace["latency_ms"].as_f64())];
    if let Some(tokens) = trace["token_usage"]["total_tokens"].as_u64() {
        said.push(format!("{tokens} tokens"));
    }
    if let Some(cost) = trace["cost_usd"].as_f64() {
        said.push(text::dollars(Some(cost)));
    }
    if let Some(model) = trace["model"].as_str() {
        said.push(short(&inert(model), 40));
    }
    writeln!(out, "{}  {}", text::cell(&trace["agent_name"], 60), paint.faint(&text::cell(&trace["trace_id"], 32)))?;
    writeln!(out, "{}", said.join("  "))?;
    let doubled = trace["notes"]["doubled_calls"].as_u64().unwrap_or_default();
    let notes = [
        (trace["in_progress"] == true, "in progress: the verdict is provisional".to_owned()),
        (trace["partial"] == true, "closed before its end was seen: spans are missing".to_owned()),
        (doubled > 0, format!("{doubled} spans record a model call that another records too; each call counts once")),
    ];
    for (_, note) in notes.iter().filter(|(holds, _)| *holds) {
        writeln!(out, "{}", paint.faint(note))?;
    }
    Ok(())
}

fn said_lines(out: &mut impl Write, said: &str, paint: Paint) -> io::Result<()> {
    let mut lines = text::inert_lines(said);
    for line in lines.by_ref().take(TEXT_LINES_MAX) {
        writeln!(out, "  {}", short(&line, TEXT_COLUMNS_MAX))?;
    }
    match lines.count() {
        0 => Ok(()),
        more => writeln!(out, "  {}", paint.faint(&format!("and {more} lines more; --format json has all"))),
    }
}

/// The spans beneath each other, by start.
struct Tree<'a> {
    spans: &'a [Value],
    children: HashMap<&'a str, Vec<usize>>,
    roots: Vec<usize>,
}

impl<'a> Tree<'a> {
    fn of(spans: &'a [Value]) -> Self {
        let ids: HashSet<&str> = spans.iter().filter_map(|span| span["span_id"].as_str()).collect();
        let (mut children, mut roots) = (HashMap::<&str, Vec<usize>>::new(), Vec::new());
        for (at, span) in spans.iter().enumerate() {
            match span["parent_span_id"].as_str().filter(|parent| ids.contains(parent)) {
                Some(parent) => children.entry(parent).or_default().push(at),
                None => roots.push(at),
            }
        }
        Self { spans, children, roots }
    }

    fn print(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let mut seen = HashSet::new();
        let mut open: Vec<(usize, usize)> = self.roots.iter().rev().map(|at| (*at, 0)).collect();
        while let Some((at, depth)) = open.pop() {
            // Spans that are each other's parents are shown once.
            if !seen.insert(at) {
                continue;
            }
            self.line(out, at, depth, paint)?;
            let id = self.spans[at]["span_id"].as_str().unwrap_or_default();
            open.extend(self.children.get(id).into_iter().flatten().rev().map(|child| (*child, depth + 1)));
        }
        let left_out = self.spans.len() - seen.len();
        if left_out > 0 {
            writeln!(out, "  {left_out} more are each other's parents")?;
        }
        Ok(())
    }

    fn line(&self, out: &mut impl Write, at: usize, depth: usize, paint: Paint) -> io::Result<()> {
        let span = &self.spans[at];
        let time = |name: &str| span[name].as_str().and_then(Timestamp::parse);
        let took = time("start_time").zip(time("end_time")).map(|(start, end)| end.since(start).as_secs_f64() * 1000.0);
        let indent = "  ".repeat(depth.min(DEPTH_MAX));
        let name = text::cell(&span["name"], 80);
        let mut line = format!("  {indent}{name}  {}", paint.faint(&text::took(took)));
        if span["status_code"] == "ERROR" {
            let why = text::cell(&span["status_message"], 80);
            line.push_str(&format!("  {}", paint.error(&format!("error {why}"))));
        }
        writeln!(out, "{line}")
    }
}

fn verdict(out: &mut impl Write, evaluation: &Value, trace: &Value, paint: Paint) -> io::Result<()> {
    let verdict = &evaluation["verdict"];
    let state = text::cell(&verdict["state"], 12);
    let by = text::names(&verdict["by"]);
    let basis = text::cell(&verdict["basis"], 40);
    writeln!(out, "{} {}  {basis}  {by}", paint.faint("Verdict"), paint.state(&state))?;
    if let Ok(basis) = serde_json::from_value::<Basis>(verdict["basis"].clone()) {
        writeln!(out, "  {}", paint.faint(basis.in_words()))?;
    }
    for layer in verdict["also"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (state, basis) = (text::cell(&layer["state"], 12), text::cell(&layer["basis"], 40));
        writeln!(out, "   also {}  {basis}  {}", paint.state(&state), text::names(&layer["by"]))?;
    }
    for result in evaluation["rule_results"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let spans = result["evidence"].as_array().into_iter().flatten().filter(|one| one["kind"] == "span");
        let is_noted = result["state"] == "pass" && spans.count() > 0;
        if result["state"] != "fail" && !is_noted {
            continue;
        }
        let (name, message) = (text::cell(&result["ruleName"], 60), text::cell(&result["message"], 200));
        let painted = match result["role"].as_str() {
            _ if is_noted => paint.faint(&format!("{name} (passed)")),
            Some("advisory") => paint.faint(&format!("{name} (advises)")),
            Some("risk") => paint.error(&format!("{name} (adds to the risk)")),
            Some("veto") => paint.error(&format!("{name} (vetoes)")),
            _ => paint.error(&name),
        };
        writeln!(out, "\n{painted}  {message}")?;
        for evidence in result["evidence"].as_array().map(Vec::as_slice).unwrap_or_default() {
            writeln!(out, "  {}", seen(evidence, trace, paint))?;
        }
    }
    Ok(())
}

/// One piece of evidence, with what stands there.
fn seen(evidence: &Value, trace: &Value, paint: Paint) -> String {
    let label = || text::cell(&evidence["label"], 40);
    let number = |name: &str| evidence[name].as_u64().unwrap_or_default();
    match evidence["kind"].as_str() {
        Some("span") => {
            let source = evidence["source"].as_str().unwrap_or_default();
            let (start, end) = (number("start"), number("end"));
            let place = format!("{} in {} {start}..{end}", label(), short(&inert(source), 24));
            match trace[source].as_str().and_then(|text| excerpt(text, start, end)) {
                Some((before, found, after)) => {
                    format!("{place}  {}{}{}", paint.faint(&before), paint.error(&found), paint.faint(&after))
                }
                None => place,
            }
        }
        Some("toolCall") => {
            format!("{} in call {} of {}", label(), number("index"), text::cell(&evidence["toolName"], 60))
        }
        Some("pattern") => format!("{}: {} ×", text::cell(&evidence["name"], 60), number("count")),
        Some("count") => {
            let limit = evidence["threshold"]
                .as_f64()
                .map(|limit| format!(", threshold {}", text::figure(limit)))
                .unwrap_or_default();
            let value = evidence["value"].as_f64().unwrap_or_default();
            format!(
                "{}: {} {}{limit}",
                text::cell(&evidence["stat"], 40),
                text::figure(value),
                text::cell(&evidence["unit"], 20)
            )
        }
        _ => label(),
    }
}

/// What stands between two code points, with a little on either side.
fn excerpt(text: &str, start: u64, end: u64) -> Option<(String, String, String)> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    let letters = || text.chars();
    if start >= end || letters().nth(start).is_none() {
        return None;
    }
    let from = start.saturating_sub(AROUND);
    let before: String = letters().skip(from).take(start - from).collect();
    let found: String = letters().skip(start).take(end - start).collect();
    let after: String = letters().skip(end).take(AROUND).collect();
    Some((inert(&before), short(&inert(&found), TEXT_COLUMNS_MAX), inert(&after)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(detail: &Value) -> String {
        let mut out = Vec::new();
        print(&mut out, detail, Paint::plain()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn span(id: &str, parent: Option<&str>, name: &str) -> Value {
        json!({
            "span_id": id, "parent_span_id": parent, "name": name, "status_code": "OK", "status_message": "",
            "start_time": "2026-12-01T09:30:00.000Z", "end_time": "2026-12-01T09:30:01.500Z",
        })
    }

    #[test]
    fn a_trace_is_a_tree_with_its_verdict_and_what_was_seen() {
        let mut failed = span("c", Some("b"), "tool lookup");
        failed["status_code"] = json!("ERROR");
        failed["status_message"] = json!("timed\nout");
        let text = shown(&json!({
            "trace": { "agent_name": "clerk", "trace_id": "0af7651916cd43dd8448eb211c80319c", "timestamp": "2026-12-01T09:30:00.000Z",
                "latency_ms": 1500.0, "cost_usd": 0.0123, "input": "Who?", "output": "🙂 Call +1 415 555 2671 now" },
            "spans": [span("a", None, "agent"), span("b", Some("a"), "chat"), failed],
            "evals": [{ "verdict": { "state": "fail", "basis": "detector_veto", "by": ["no_pii"], "also": [] },
                "rule_results": [{ "ruleName": "no_pii", "state": "fail", "role": "veto", "message": "the output carries 1 phone",
                    "evidence": [{ "kind": "span", "source": "output", "start": 7, "end": 22, "label": "phone" }] }] }],
        }));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("clerk  0af7651916cd43dd"), "{text}");
        assert!(
            text.contains("\n  agent  1.5 s\n    chat  1.5 s\n      tool lookup  1.5 s  error timed out\n"),
            "{text}"
        );
        assert!(text.contains("Verdict fail  detector_veto  no_pii\n  a rule that vetoes found something\n"), "{text}");
        assert!(text.contains("no_pii (vetoes)  the output carries 1 phone"), "{text}");
        assert!(text.contains("phone in output 7..22  🙂 Call +1 415 555 2671 now"), "{text}");
    }

    #[test]
    fn what_a_rule_saw_and_let_pass_is_told() {
        let result = |name: &str, kind: &str| {
            json!({ "ruleName": name, "state": "pass", "role": "veto", "message": "1 reserved value",
                "evidence": [{ "kind": kind, "source": "output", "start": 0, "end": 4, "label": "test_value" }] })
        };
        let text = shown(&json!({
            "trace": { "agent_name": "clerk", "trace_id": "x", "timestamp": "t", "output": "4111" },
            "evals": [{ "verdict": { "state": "pass", "basis": "clean", "by": [] },
                "rule_results": [result("no_pii", "span"), result("quiet", "count")] }],
        }));
        assert!(text.contains("no_pii (passed)  1 reserved value\n  test_value in output 0..4  4111\n"), "{text}");
        assert!(!text.contains("quiet"), "{text}");
    }

    #[test]
    fn a_trace_in_progress_and_calls_that_are_recorded_twice_are_told() {
        let mut detail = json!({
            "trace": { "agent_name": "clerk", "trace_id": "x", "timestamp": "t", "in_progress": true, "notes": { "doubled_calls": 2 } },
            "evals": [{ "verdict": { "state": "unknown" }, "rule_results": [{ "ruleName": "keyword_overlap", "state": "fail", "role": "advisory",
                "message": "m", "evidence": [{ "kind": "count", "stat": "share", "unit": "ratio", "value": 0.1, "threshold": 1.0 / 3.0 }] }] }],
        });
        let text = shown(&detail);
        assert!(text.contains("in progress: the verdict is provisional"), "{text}");
        assert!(text.contains("2 spans record a model call that another records too"), "{text}");
        assert!(text.contains("share: 0.1 ratio, threshold 0.3333\n"), "{text}");
        detail["trace"] = json!({ "agent_name": "clerk", "trace_id": "x", "timestamp": "t", "in_progress": false });
        assert!(!shown(&detail).contains("provisional"));
    }

    #[test]
    fn spans_that_are_each_others_parents_and_hostile_names_do_no_harm() {
        let text = shown(&json!({
            "trace": { "agent_name": "\u{1b}]0;x\u{7}", "trace_id": "x", "timestamp": "t" },
            "spans": [span("a", Some("b"), "one"), span("b", Some("a"), "two")],
            "evals": [],
        }));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert!(text.contains("2 more are each other's parents"), "{text}");
    }

    #[test]
    fn what_was_seen_is_counted_in_code_points() {
        let text = "שלום 🙂🙂 key";
        assert_eq!(excerpt(text, 8, 11), Some(("שלום 🙂🙂 ".to_owned(), "key".to_owned(), String::new())));
        assert_eq!(excerpt(text, 99, 100), None);
        assert_eq!(excerpt(text, 3, 3), None);
    }
}
