//! Medical record numbers, known only by the words before them.

use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, pattern, person};
use crate::text::View;

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:(?-u:\b)mrn(?-u:\b)|medical[ _-]?record(?:[ _-]?(?:number|no\.?|id|#))?|patient[ _-]?(?:id|number|no\.?)|health[ _-]?(?:record|card)[ _-]?(?:number|no\.?))[^A-Za-z0-9\n]{0,6}(?:is|was)?[^A-Za-z0-9\n]{0,3}([A-Z]{0,4}-?[0-9]{5,12}[A-Z]?)(?-u:\b)",
    )
});

/// Finds medical record numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    NAMED
        .captures_iter(view.text())
        .filter_map(|found| found.get(1))
        .map(|number| person(number.range(), "medical_record", Standing::Live))
        .collect()
}
