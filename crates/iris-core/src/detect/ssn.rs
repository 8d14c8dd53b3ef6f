//! United States social security numbers, by the rules of issuance.
//!
//! Source: <https://www.ssa.gov/employer/randomization.html>: area never 000, 666 or 900-999, group never 00, serial
//! never 0000.

use std::sync::LazyLock;

use regex::Regex;

use super::shape::Shape;
use super::{Apart, Hit, Standing, context, digits, pattern, person, reserved};
use crate::text::View;

static DASHED: Shape = Shape::new(r"[0-9]{3}(?: ?- ?|-\n)[0-9]{2}(?: ?- ?|-\n)[0-9]{4}");
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:(?-u:\b)ssns?(?-u:\b)|ssn_|_ssn|social(?:[ _-]?security)?(?: (?:number|no\.?|#))?|soc\.? sec\.?|(?-u:\b)ss ?#|seguro social)[^0-9\n]{0,32}([0-9]{3}[ ./-]{0,3}[0-9]{2}[ ./-]{0,3}[0-9]{4}|(?:[0-9][ .-]{1,2}){8}[0-9])",
    )
});

/// Finds social security numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let dashed = DASHED.within(text).find_iter(text).map(|found| found.range());
    let named = NAMED.captures_iter(text).filter_map(|found| found.get(1).map(|number| number.range()));
    let mut hits = Apart::default();
    for bytes in dashed.chain(named) {
        let number = digits::of(text.get(bytes.clone()).unwrap_or(""));
        if !hits.is_free(&bytes) || !context::is_number_alone(text, &bytes) {
            continue;
        }
        if reserved::is_test_ssn(&number) {
            hits.put(person(bytes, "ssn", Standing::TestValue));
        } else if is_issued(&number) {
            hits.put(person(bytes, "ssn", Standing::Live));
        }
    }
    hits.into_hits()
}

fn is_issued(number: &str) -> bool {
    let part = |from: usize, to: usize| number.get(from..to).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    let (area, group, serial) = (part(0, 3), part(3, 5), part(5, 9));
    area > 0 && area != 666 && area < 900 && group > 0 && serial > 0
}
