//! Numbers of persons, licences and accounts that carry their name before them, and those with check digits of
//! their own.

use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, context, pattern, person};
use crate::text::View;

static LICENCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:driver'?s?|driving)[ _-]?licen[cs]e(?:[ _-]?(?:number|no\.?|id|#))?[^A-Za-z0-9\n]{0,6}(?:(?:number|is|was)[ :]{1,2}){0,2}([A-Z]{0,3}[0-9][A-Z0-9-]{5,15})(?-u:\b)",
    )
});
static TAXPAYER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)(?-u:\b)i?tin(?-u:\b)[^0-9\n]{0,16}(9[0-9]{2}[ -]?[5-9][0-9][ -]?[0-9]{4})(?-u:\b)")
});
static ACCOUNT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:bank|checking|savings)[ _-]?(?:account|acct)(?:[ _-]?(?:number|no\.?|#))?[^A-Za-z0-9\n]{0,6}(?:is[ :]{1,2})?([0-9]{8,17})(?-u:\b)",
    )
});
static INSURANCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:national insurance|(?-u:\b)nino?(?-u:\b))[^\n]{0,24}?(?-u:\b)([A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D])(?-u:\b)",
    )
});

/// Finds them.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let kinds = [
        (&LICENCE, "driver_licence"),
        (&TAXPAYER, "taxpayer_id"),
        (&ACCOUNT, "bank_account"),
        (&INSURANCE, "national_insurance"),
    ];
    let mut hits = Vec::new();
    for (named, label) in kinds {
        let numbers = named.captures_iter(text).filter_map(|found| found.get(1));
        hits.extend(
            numbers
                .filter(|number| context::is_number_alone(text, &number.range()))
                .map(|number| person(number.range(), label, Standing::Live)),
        );
    }
    hits
}
