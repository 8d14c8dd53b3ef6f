//! Replies stay bounded: long texts are cut and say so, and every field that lost something is named.
//!
//! Works on the reply's JSON. A size is bytes of text, plus a little for each value around it.

use serde_json::{Map, Value};

/// What a value costs beside its text: a number, a brace, a comma.
const VALUE_BYTES: usize = 8;

/// What stands in place of the rest of a text, around the number of characters left out.
const MARK: &str = " [cut: ";
const MARK_END: &str = " more characters]";

/// What a mark takes at most.
const MARK_BYTES: usize = 40;

/// How many cut fields a reply names.
const NAMED_MAX: usize = 1000;

/// How much of a field is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measure {
    /// Of a text, in bytes.
    text_bytes: usize,
    /// Of an array.
    items: usize,
    /// Of an object.
    entries: usize,
    /// Arrays and objects within each other.
    depth: usize,
}

impl Measure {
    /// The first that cuts anything.
    pub(super) const CUT: Self = Self { text_bytes: 4000, items: 1000, entries: 200, depth: 16 };

    /// What a caller gets that wants it brief.
    pub(super) const BRIEF: Self = Self { text_bytes: 400, items: 100, entries: 100, depth: 8 };

    /// From everything to the least; ids and times fit into the least.
    const ALL: [Self; 4] = [
        Self { text_bytes: usize::MAX, items: usize::MAX, entries: usize::MAX, depth: usize::MAX },
        Self::CUT,
        Self::BRIEF,
        Self { text_bytes: 64, items: 4, entries: 16, depth: 4 },
    ];

    /// The most generous measure, none above `most`, by which all of `values` fit; the least when none does.
    pub(super) fn fitting(values: &[&Value], bytes_max: usize, most: Option<Self>) -> Self {
        let first = most.and_then(|most| Self::ALL.iter().position(|one| *one == most)).unwrap_or_default();
        let fits = |measure: &&Self| values.iter().map(|value| measure.size(value)).sum::<usize>() <= bytes_max;
        let least = Self::ALL[Self::ALL.len() - 1];
        Self::ALL[first..].iter().find(fits).copied().unwrap_or(least)
    }

    /// The size of a value that nothing is cut from.
    pub(super) fn whole(value: &Value) -> usize {
        Self::ALL[0].size_at(value, 1)
    }

    /// The size a record has once it is cut.
    pub(super) fn size(&self, record: &Value) -> usize {
        match record {
            Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + self.size_at(field, 1)).sum(),
            other => self.size_at(other, 1),
        }
    }

    fn size_at(&self, value: &Value, depth: usize) -> usize {
        let inner = match value {
            Value::String(text) if text.len() > self.text_bytes => self.text_bytes + MARK_BYTES,
            Value::String(text) => text.len(),
            Value::Array(_) | Value::Object(_) if depth >= self.depth => MARK_BYTES,
            Value::Array(items) => items.iter().take(self.items).map(|item| self.size_at(item, depth + 1)).sum(),
            Value::Object(entries) => entries
                .iter()
                .take(self.entries)
                .filter(|(name, _)| name.len() <= self.text_bytes)
                .map(|(name, entry)| name.len() + self.size_at(entry, depth + 1))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        inner + VALUE_BYTES
    }

    /// Cuts the fields of a record; the record keeps all of them.
    pub(super) fn cut(&self, record: &mut Value, place: &str, cuts: &mut Cuts) {
        self.cut_further(record, place, cuts, &[]);
    }

    /// As [`Measure::cut`], of a record that lost something before: so many characters of a text, or one or more
    /// of anything else, field by field.
    pub(super) fn cut_further(&self, record: &mut Value, place: &str, cuts: &mut Cuts, lost: &[(&str, u64)]) {
        let Value::Object(fields) = record else { return };
        for (name, field) in fields.iter_mut() {
            let lost = lost.iter().find(|(one, _)| one == name).map_or(0, |(_, lost)| *lost);
            let is_cut = match field {
                Value::String(text) => self.cut_text(text, lost, false),
                other => self.cut_at(other, 1, lost > 0),
            };
            if is_cut || lost > 0 {
                cuts.push(format!("{place}.{name}"));
            }
        }
    }

    /// Cuts a value that is to become a field of a record. True when it lost something.
    pub(super) fn cut_field(&self, field: &mut Value) -> bool {
        self.cut_at(field, 1, false)
    }

    /// `again`: it was cut before, so that a text that carries a mark is cut to a smaller one.
    fn cut_at(&self, value: &mut Value, depth: usize, again: bool) -> bool {
        match value {
            Value::String(text) => self.cut_text(text, 0, again),
            Value::Array(items) if depth >= self.depth => {
                let is_cut = !items.is_empty();
                if is_cut {
                    *value = nested();
                }
                is_cut
            }
            Value::Object(entries) if depth >= self.depth => {
                let is_cut = !entries.is_empty();
                if is_cut {
                    *value = nested();
                }
                is_cut
            }
            Value::Array(items) => {
                let mut is_cut = items.len() > self.items;
                items.truncate(self.items);
                for item in items {
                    is_cut |= self.cut_at(item, depth + 1, again);
                }
                is_cut
            }
            Value::Object(entries) => self.cut_entries(entries, depth, again),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn cut_entries(&self, entries: &mut Map<String, Value>, depth: usize, again: bool) -> bool {
        let before = entries.len();
        let mut kept = 0;
        entries.retain(|name, _| {
            kept += 1;
            kept <= self.entries && name.len() <= self.text_bytes
        });
        let mut is_cut = entries.len() < before;
        for (_, entry) in entries.iter_mut() {
            is_cut |= self.cut_at(entry, depth + 1, again);
        }
        is_cut
    }

    /// `lost` characters are gone already.
    fn cut_text(&self, text: &mut String, lost: u64, again: bool) -> bool {
        let mark = if again { marked(text) } else { None };
        let (kept, gone) = mark.unwrap_or((text.len(), 0));
        if kept <= self.text_bytes && lost == 0 {
            return false;
        }
        let at = text.floor_char_boundary(self.text_bytes.min(kept));
        let left_out = text[at..kept].chars().count() as u64;
        let left_out = left_out.saturating_add(lost).saturating_add(gone);
        text.truncate(at);
        text.push_str(&format!("{MARK}{left_out}{MARK_END}"));
        true
    }
}

/// Where the mark at the end of a text begins, and how many characters it says are gone.
fn marked(text: &str) -> Option<(usize, u64)> {
    let (kept, gone) = text.strip_suffix(MARK_END)?.rsplit_once(MARK)?;
    Some((kept.len(), gone.parse().ok()?))
}

fn nested() -> Value {
    Value::String("[cut: nested too deep]".to_owned())
}

/// Which fields lost something.
#[derive(Debug)]
pub(super) struct Cuts {
    named: Vec<String>,
    named_max: usize,
    more: usize,
}

impl Default for Cuts {
    fn default() -> Self {
        Self::naming(NAMED_MAX)
    }
}

impl Cuts {
    /// Names at most so many; the others are counted.
    pub(super) const fn naming(named_max: usize) -> Self {
        Self { named: Vec::new(), named_max, more: 0 }
    }

    pub(super) fn push(&mut self, place: String) {
        if self.named.len() < self.named_max {
            self.named.push(place);
        } else {
            self.more += 1;
        }
    }

    /// The names, and how many are not among them.
    pub(super) fn into_names(mut self) -> Vec<String> {
        if self.more > 0 {
            self.named.push(format!("and {} more", self.more));
        }
        self.named
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_stays_whole() {
        let mut record = json!({ "input": "x".repeat(9000), "metadata": { "a": [1, { "b": "c" }] } });
        let (before, mut cuts) = (record.clone(), Cuts::default());
        Measure::fitting(&[&record], 10_000, None).cut(&mut record, "traces[0]", &mut cuts);
        assert_eq!((record, cuts.into_names()), (before, Vec::<String>::new()));
    }

    #[test]
    fn every_field_that_lost_something_is_named_and_the_size_told_before_is_the_size_after() {
        let long = "é".repeat(5000);
        let mut record = json!({
            "trace_id": "0af7651916cd43dd8448eb211c80319c", "input": long, "output": "short", "cost_usd": 1.5,
            "tool_calls": (0..5000).map(|n| json!({ "tool_name": "t", "input": { "q": n } })).collect::<Vec<_>>(),
            "metadata": { long.clone(): 1, "blob": [[[[[[long.clone()]]]]]] },
        });
        for bytes_max in [1_000_000, 20_000, 3_000, 0] {
            let mut cut = record.clone();
            let (measure, mut cuts) = (Measure::fitting(&[&record], bytes_max, None), Cuts::default());
            let told = measure.size(&record);
            measure.cut(&mut cut, "traces[7]", &mut cuts);
            assert!(bytes_max == 0 || told <= bytes_max, "{told} > {bytes_max}");
            let is = Measure::ALL[0].size(&cut);
            assert!(is <= told, "{is} > {told}");
            assert_eq!(cut["trace_id"], record["trace_id"]);
            if bytes_max < 1_000_000 {
                assert_eq!(cuts.into_names(), ["traces[7].input", "traces[7].tool_calls", "traces[7].metadata"]);
                assert!(cut["input"].as_str().is_some_and(|text| text.ends_with(" more characters]")), "{cut}");
            }
        }
        let mut cuts = Cuts::default();
        Measure::BRIEF.cut(&mut record, "t", &mut cuts);
        assert_eq!(record["input"], format!("{} [cut: 4800 more characters]", "é".repeat(200)));
    }

    #[test]
    fn what_was_lost_before_is_counted_and_named() {
        let mut record = json!({ "input": "é".repeat(4096), "output": "short", "metadata": {}, "tool_calls": [] });
        let mut cuts = Cuts::default();
        Measure::CUT.cut_further(&mut record, "t", &mut cuts, &[("input", 1000), ("metadata", 1), ("tool_calls", 0)]);
        assert_eq!(record["input"], format!("{} [cut: 3096 more characters]", "é".repeat(2000)));
        assert_eq!(cuts.into_names(), ["t.input", "t.metadata"]);

        let mut document = json!({ "blob": ["x".repeat(5000)] });
        assert!(Measure::CUT.cut_field(&mut document));
        let mut record = json!({ "metadata": document, "output": "no mark [cut: 7 more characters]" });
        let whole = record.clone();
        Measure::CUT.cut_further(&mut record, "t", &mut Cuts::default(), &[("metadata", 1)]);
        assert_eq!(record, whole, "it is cut already");
        Measure::BRIEF.cut_further(&mut record, "t", &mut Cuts::default(), &[("metadata", 1)]);
        assert_eq!(record["metadata"]["blob"][0], format!("{} [cut: 4600 more characters]", "x".repeat(400)));
    }

    #[test]
    fn brief_is_never_more_than_brief() {
        let record = json!({ "input": "x".repeat(9000) });
        assert_eq!(Measure::fitting(&[&record], usize::MAX, Some(Measure::BRIEF)), Measure::BRIEF);
    }

    #[test]
    fn names_are_bounded_too() {
        let mut cuts = Cuts::default();
        (0..NAMED_MAX + 7).for_each(|n| cuts.push(n.to_string()));
        let names = cuts.into_names();
        assert_eq!((names.len(), names.last().map(String::as_str)), (NAMED_MAX + 1, Some("and 7 more")));
    }
}
