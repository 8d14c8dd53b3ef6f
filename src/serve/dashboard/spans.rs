//! The spans of a trace as a waterfall: a tree by parent, each with its lane, its place in time and what it used.

use std::collections::{HashMap, HashSet};

use iris_core::model::{RawSpan, Reading, Role, SpanId, StatusCode, Timestamp};

use super::format::{NONE, count, millis, usd_of};
use super::text::Words;

/// Rows of a waterfall before one asks for more.
pub(super) const ROWS: usize = 200;

/// How far rows are indented.
const DEPTH_MAX: usize = 12;

/// Characters of a span's name.
const NAME_CHARS: usize = 120;

/// Which lane a span runs in: its class, its sign and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    pub class: &'static str,
    pub name: &'static str,
}

const AGENT: Lane = Lane { class: "agent", name: "agent" };
const MODEL: Lane = Lane { class: "model", name: "model" };
const TOOL: Lane = Lane { class: "tool", name: "tool" };
const OTHER: Lane = Lane { class: "other", name: "other" };

/// The lane of a role.
pub(super) const fn lane(role: Option<Role>) -> Lane {
    match role {
        Some(Role::Agent) => AGENT,
        Some(Role::Llm | Role::Embedding) => MODEL,
        Some(Role::Tool | Role::Retriever | Role::Reranker) => TOOL,
        _ => OTHER,
    }
}

/// A row of the waterfall.
pub(super) struct Row {
    pub id: String,
    pub link: String,
    pub name: Words,
    pub depth: usize,
    pub lane: Lane,
    pub is_error: bool,
    pub is_chosen: bool,
    /// In percent of the whole.
    pub x: String,
    pub width: String,
    pub took: String,
    pub tokens: String,
    pub cost: String,
    pub model: Option<Words>,
}

/// A bar in the strip of lanes.
pub(super) struct Bar {
    pub lane: Lane,
    pub x: String,
    pub y: usize,
    pub width: String,
    pub title: Words,
    pub is_error: bool,
}

/// The spans of a trace.
pub(super) struct Waterfall {
    pub rows: Vec<Row>,
    pub strip: Vec<Bar>,
    pub took: String,
    /// The moments below the strip, in percent and as text.
    pub ticks: Vec<(String, String)>,
    /// How many are not shown.
    pub more: usize,
}

/// The window in which all spans lie, in nanoseconds.
struct Clock {
    begin: u64,
    length: f64,
}

impl Clock {
    fn of(spans: &[(RawSpan, Reading)]) -> Self {
        let begin = spans.iter().map(|(span, _)| span.start.as_unix_nanos()).min().unwrap_or_default();
        let end = spans.iter().map(|(span, _)| end(span)).max().unwrap_or_default();
        Self { begin, length: (end.saturating_sub(begin)).max(1) as f64 }
    }

    fn share(&self, nanos: u64) -> f64 {
        (nanos.saturating_sub(self.begin) as f64 / self.length * 100.0).clamp(0.0, 100.0)
    }

    /// Where a span begins and how wide it is, in percent; what takes no time is seen all the same.
    fn place(&self, span: &RawSpan) -> (f64, f64) {
        let x = self.share(span.start.as_unix_nanos()).min(99.6);
        (x, (self.share(end(span)) - x).max(0.4))
    }
}

fn end(span: &RawSpan) -> u64 {
    span.end.as_unix_nanos().max(span.start.as_unix_nanos())
}

/// How long a span took.
pub(super) fn took(span: &RawSpan) -> String {
    if span.end == Timestamp::default() {
        return "not ended".to_owned();
    }
    millis(span.end.since(span.start).as_secs_f64() * 1000.0)
}

/// Draws the spans of a trace; all of them when that is asked for.
pub(super) fn waterfall(trace: &str, spans: &[(RawSpan, Reading)], chosen: Option<SpanId>, all: bool) -> Waterfall {
    let clock = Clock::of(spans);
    let order = order(spans);
    let most = if all { usize::MAX } else { ROWS };
    let rows: Vec<Row> = order
        .iter()
        .take(most)
        .filter_map(|(at, depth)| {
            let (span, reading) = spans.get(*at)?;
            Some(row(trace, span, reading, *depth, &clock, chosen, all))
        })
        .collect();
    let lanes = [AGENT, MODEL, TOOL];
    let strip = spans.iter().filter_map(|(span, reading)| {
        let lane = lane(reading.role);
        let y = lanes.iter().position(|one| *one == lane)?;
        let (x, width) = clock.place(span);
        Some(Bar {
            lane,
            x: format!("{x:.2}"),
            y: y * 18 + 3,
            width: format!("{width:.2}"),
            title: Words::brief(&span.name, NAME_CHARS),
            is_error: span.status == StatusCode::Error,
        })
    });
    let ms = clock.length / 1e6;
    let tick = |part: u32| (format!("{}", part * 25), millis(ms * f64::from(part) / 4.0));
    Waterfall {
        more: spans.len() - rows.len(),
        rows,
        strip: strip.collect(),
        took: millis(ms),
        ticks: (0..=4).map(tick).collect(),
    }
}

fn row(
    trace: &str,
    span: &RawSpan,
    reading: &Reading,
    depth: usize,
    clock: &Clock,
    chosen: Option<SpanId>,
    all: bool,
) -> Row {
    let (x, width) = clock.place(span);
    let usage = reading.usage;
    let tokens = match (usage.input, usage.output) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    };
    let is_model = lane(reading.role) == MODEL;
    let all = if all { "&spans=all" } else { "" };
    Row {
        id: span.span_id.to_string(),
        link: format!("/traces/{trace}?span={}{all}#span", span.span_id),
        name: Words::brief(&span.name, NAME_CHARS),
        depth: depth.min(DEPTH_MAX),
        lane: lane(reading.role),
        is_error: span.status == StatusCode::Error,
        is_chosen: Some(span.span_id) == chosen,
        x: format!("{x:.2}"),
        width: format!("{width:.2}"),
        took: took(span),
        tokens: tokens.filter(|_| is_model).map_or_else(|| NONE.to_owned(), count),
        cost: usd_of(reading.cost_usd.filter(|_| is_model)),
        model: reading.model.as_deref().filter(|_| is_model).map(|model| Words::brief(model, 60)),
    }
}

/// The spans with their depth, children after their parents, siblings by start. A span whose parents are missing or go in
/// a circle stands at the top.
fn order(spans: &[(RawSpan, Reading)]) -> Vec<(usize, usize)> {
    let known: HashSet<SpanId> = spans.iter().map(|(span, _)| span.span_id).collect();
    let mut children: HashMap<SpanId, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (at, (span, _)) in spans.iter().enumerate() {
        match span.parent_span_id.filter(|parent| *parent != span.span_id && known.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    let mut ordered = Vec::with_capacity(spans.len());
    let mut seen = vec![false; spans.len()];
    let every = 0..spans.len();
    // After the roots whatever was not reached: circles.
    for root in roots.into_iter().chain(every) {
        let mut waiting = vec![(root, 0)];
        while let Some((at, depth)) = waiting.pop() {
            let Some((span, _)) = spans.get(at) else { continue };
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            ordered.push((at, depth));
            // Two spans may share an id: the children hang below the first.
            let below = children.remove(&span.span_id).unwrap_or_default();
            waiting.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    ordered
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use iris_core::model::{SpanKind, TraceId};

    pub fn span(id: u8, parent: Option<u8>, start: u64, end: u64) -> (RawSpan, Reading) {
        let span_id = |id: u8| SpanId::from_bytes(&[0, 0, 0, 0, 0, 0, 0, id]).unwrap();
        let span = RawSpan {
            trace_id: TraceId::from_bytes(&[1; 16]).unwrap(),
            span_id: span_id(id),
            parent_span_id: parent.map(span_id),
            flags: 0,
            trace_state: String::new(),
            name: format!("span {id}"),
            kind: SpanKind::Internal,
            start: Timestamp::from_unix_nanos(start),
            end: Timestamp::from_unix_nanos(end),
            status: StatusCode::Unset,
            status_message: String::new(),
            attributes: serde_json::Map::new(),
            events: Vec::new(),
            links: Vec::new(),
            dropped: 0,
            resource: Arc::default(),
            scope: Arc::default(),
        };
        (span, Reading::default())
    }

    fn depths(spans: &[(RawSpan, Reading)]) -> Vec<(String, usize)> {
        let rows = waterfall("t", spans, None, true).rows;
        rows.into_iter().map(|row| (row.name.to_string(), row.depth)).collect()
    }

    #[test]
    fn children_stand_below_their_parents_whatever_the_order() {
        let spans =
            [span(3, Some(2), 30, 40), span(1, None, 10, 90), span(4, Some(1), 50, 60), span(2, Some(1), 20, 45)];
        let named = |names: &[(&str, usize)]| {
            names.iter().map(|(name, depth)| ((*name).to_owned(), *depth)).collect::<Vec<_>>()
        };
        let found = depths(&spans);
        assert_eq!(found.first(), Some(&("span 1".to_owned(), 0)));
        assert!(found.contains(&("span 3".to_owned(), 2)) && found.len() == 4, "{found:?}");
        let circle = [span(1, Some(2), 1, 2), span(2, Some(1), 1, 2)];
        assert_eq!(depths(&circle), named(&[("span 1", 0), ("span 2", 1)]));
        let orphan = [span(1, Some(9), 1, 2), span(2, Some(2), 1, 2)];
        assert_eq!(depths(&orphan), named(&[("span 1", 0), ("span 2", 0)]));
        let doubled = [span(1, None, 1, 2), span(1, None, 1, 2), span(2, Some(1), 1, 2)];
        assert_eq!(depths(&doubled).len(), 3);
    }

    #[test]
    fn many_spans_are_shown_a_part_at_a_time_and_bars_stay_within() {
        let spans: Vec<(RawSpan, Reading)> =
            (0..=250).map(|id| span((id % 250) as u8 + 1, None, id, if id == 7 { 0 } else { id + 900 })).collect();
        let part = waterfall("t", &spans, None, false);
        assert_eq!((part.rows.len(), part.more), (ROWS, 51));
        for row in waterfall("t", &spans, None, true).rows {
            let (x, width): (f64, f64) = (row.x.parse().unwrap(), row.width.parse().unwrap());
            assert!(x >= 0.0 && width >= 0.4 && x + width <= 100.1, "{x} {width}");
        }
        assert_eq!(waterfall("t", &[], None, false).rows.len(), 0);
    }
}
