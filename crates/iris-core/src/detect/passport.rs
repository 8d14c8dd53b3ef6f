//! Passport numbers, known only by the word before them.

use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, context, pattern, person};
use crate::text::View;

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:passports?|reisepass|passeport|pasaporte|passaporto|paspoort|паспорт|护照|パスポート)[^0-9\n]{0,24}?(?-u:\b)([A-Z]{0,2}[0-9]{6,9}[A-Z]?|[CFGHJK][0-9CFGHJKLMNPRTVWXYZ]{8})(?-u:\b)",
    )
});

/// Finds passport numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    NAMED
        .captures_iter(text)
        .filter_map(|found| found.get(1))
        .filter(|number| number.as_str().bytes().filter(u8::is_ascii_digit).count() >= 4)
        .filter(|number| context::is_number_alone(text, &number.range()))
        .map(|number| person(number.range(), "passport", Standing::Live))
        .collect()
}
