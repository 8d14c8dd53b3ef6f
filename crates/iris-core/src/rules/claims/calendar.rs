//! Days and times of the material.

use std::ops::Range;
use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use regex::{Captures, Regex};

use super::{Fact, Material, Said, pattern, proposes};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

static DAY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)(?:(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.? (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?|(?P<d2>[0-9]{1,2})(?:st|nd|rd|th)? (?:of )?(?P<m2>january|february|march|april|may|june|july|august|september|october|november|december))(?-u:\b)",
    )
});
static ISO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?-u:\b)([0-9]{4})-([0-9]{2})-([0-9]{2})"));

fn month_day(found: &Captures<'_>) -> Option<(i8, i8)> {
    let month = found.name("m").or_else(|| found.name("m2"))?.as_str().to_lowercase();
    let at = MONTHS.iter().position(|name| month.starts_with(name))?;
    let day = found.name("d").or_else(|| found.name("d2"))?.as_str().parse().ok()?;
    Some((i8::try_from(at + 1).ok()?, day))
}

fn iso_dates(text: &str) -> impl Iterator<Item = Date> {
    ISO.captures_iter(text).take(200).filter_map(|found| {
        let part = |at: usize| found.get(at).map(|part| part.as_str());
        Date::new(part(1)?.parse().ok()?, part(2)?.parse().ok()?, part(3)?.parse().ok()?).ok()
    })
}

fn weekday_of(name: &str) -> Option<Weekday> {
    Some(match name.get(..3)?.to_lowercase().as_str() {
        "mon" => Weekday::Monday,
        "tue" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        _ => Weekday::Sunday,
    })
}

/// The dates of the material, found once.
fn dates(material: &Material) -> &[Date] {
    material.dates.get_or_init(|| iso_dates(&material.text).collect())
}

/// The days of months of the material, found once.
fn days(material: &Material) -> &[(i8, i8)] {
    material.days.get_or_init(|| {
        let named = DAY.captures_iter(&material.text).take(200).filter_map(|found| month_day(&found));
        dates(material).iter().map(|date| (date.month(), date.day())).chain(named).collect()
    })
}

/// A weekday beside a date that falls on another one, by the year that the material gives the date.
pub fn weekday(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?-u:\b)(monday|tuesday|wednesday|thursday|friday|saturday|sunday),? (?:the )?")
    });
    let known = dates(material);
    if known.is_empty() {
        return None;
    }
    NAMED.captures_iter(said.text).find_map(|named| {
        let (whole, name) = (named.get(0)?, named.get(1)?);
        let rest = said.text.get(whole.end()..)?;
        let found = DAY.captures(rest).filter(|found| found.get(0).is_some_and(|one| one.start() == 0))?;
        let (month, day) = month_day(&found)?;
        let date = known.iter().find(|date| date.month() == month && date.day() == day)?;
        (weekday_of(name.as_str())? != date.weekday())
            .then(|| said.at + whole.start()..said.at + whole.end() + found.get(0).map_or(0, |one| one.end()))
    })
}

/// A day of a month of which the material names other days only.
pub fn date(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    let known = days(material);
    if known.is_empty() || proposes(said) || !said.attributes() {
        return None;
    }
    DAY.captures_iter(said.text).find_map(|found| {
        let (month, day) = month_day(&found)?;
        let other = known.iter().any(|(m, _)| *m == month) && !known.contains(&(month, day));
        other.then(|| found.get(0).map(|one| said.at + one.start()..said.at + one.end())).flatten()
    })
}

/// "Hourly" for a line that runs daily, and the other way round.
pub fn schedule(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static CRON: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)(?:^|[\s`'\x22])([0-9]{1,2}) ([0-9]{1,2}|\*) \* \* (\*|[0-7])(?:$|[\s`'\x22])"));
    static HOURLY: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:hourly|every hour|each hour)(?-u:\b)"));
    static DAILY: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:daily|every day|each day|once a day|every night|nightly)(?-u:\b)"));
    let lines = material.fact(Fact::Lines, |text| {
        if !text.contains('*') {
            return Vec::new();
        }
        CRON.captures_iter(text).take(10).filter_map(|found| Some(found.get(2)?.as_str().to_owned())).collect()
    });
    let hourly = match lines {
        [hour] => hour == "*",
        _ => return None,
    };
    let (says_hourly, says_daily) = (HOURLY.is_match(said.text), DAILY.is_match(said.text));
    (!proposes(said) && says_hourly != says_daily && says_hourly != hourly).then(|| said.whole())
}
