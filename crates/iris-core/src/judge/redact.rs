//! Personal data and credentials as placeholders, before a text leaves for a provider.

use std::collections::HashMap;

use crate::detect::{self, Places, Standing};
use crate::text::View;

/// Replaces what `no_pii` would find by `[REDACTED:<kind>#<n>]`. One redactor reads all texts of a call, so that equal
/// values get equal numbers and a judge can still compare.
#[derive(Debug, Default)]
pub struct Redactor {
    numbers: HashMap<(&'static str, String), usize>,
    counts: HashMap<&'static str, usize>,
}

impl Redactor {
    /// The text with placeholders. Values published for tests and documentation stay as they are.
    ///
    /// What lies beyond the first MiB is not searched: callers refuse such a text before.
    pub fn redact(&mut self, text: &str) -> String {
        let view = View::folded(text);
        let hits = detect::find_all(&view, &Places::of(view.text())).hits;
        let live = hits.iter().filter(|hit| hit.standing == Standing::Live);
        let spans: Vec<_> = live
            .map(|hit| {
                let value = view.text().get(hit.bytes.clone()).unwrap_or_default();
                let number = self.number(hit.label, value);
                (view.span(hit.bytes.clone()), hit.label, number)
            })
            .collect();
        if spans.is_empty() {
            return text.to_owned();
        }
        let mut redacted = String::with_capacity(text.len());
        let mut letters = text.chars();
        let mut at = 0;
        for (span, label, number) in spans {
            if span.start() < at {
                continue;
            }
            redacted.extend(letters.by_ref().take(span.start() - at));
            redacted.push_str(&format!("[REDACTED:{label}#{number}]"));
            for _ in span.start()..span.end() {
                letters.next();
            }
            at = span.end();
        }
        redacted.extend(letters);
        redacted
    }

    /// How many distinct values were replaced.
    pub fn values(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, label: &'static str, value: &str) -> usize {
        if let Some(number) = self.numbers.get(&(label, value.to_owned())) {
            return *number;
        }
        let count = self.counts.entry(label).or_default();
        *count += 1;
        self.numbers.insert((label, value.to_owned()), *count);
        *count
    }
}
