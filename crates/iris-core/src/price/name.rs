//! A model's name in the forms that clients, clouds and snapshots give it.

use std::borrow::Cow;

/// Words in front of a cloud's model id that say where it runs.
const REGIONS: [&str; 10] = ["us", "eu", "apac", "jp", "au", "ca", "sa", "me", "us-gov", "global"];
/// The years a snapshot may be of.
const YEARS: std::ops::RangeInclusive<u32> = 2020..=2099;

/// The day of a snapshot as `20250514`.
pub type Day = u32;

/// A name and the shorter forms that may be listed, the longest first. Each with the day that was cut off its end.
pub struct Named<'a> {
    forms: Vec<(Cow<'a, str>, Option<Day>)>,
}

impl<'a> Named<'a> {
    /// Takes a name apart. Only what is known to stand around a name is cut off: paths of a cloud, the words of a
    /// region, a cloud's version of its interface, and the day of a snapshot.
    pub fn read(name: &'a str) -> Self {
        let name = name.trim();
        let lower = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(name.to_ascii_lowercase()),
            false => Cow::Borrowed(name),
        };
        let mut named = Self { forms: Vec::with_capacity(4) };
        named.add(lower.clone());
        let bare = without_path(&lower);
        named.add_shorter(bare);
        if let Some((region, rest)) = bare.split_once('.')
            && REGIONS.contains(&region)
        {
            named.add_shorter(rest);
        }
        named
    }

    fn add_shorter(&mut self, name: &str) {
        if self.forms.iter().all(|(form, _)| form != name) {
            self.add(Cow::Owned(name.to_owned()));
        }
    }

    fn add(&mut self, name: Cow<'a, str>) {
        let shorter = without_version(&name).map(str::to_owned);
        self.forms.push((name, None));
        if let Some(shorter) = shorter {
            self.forms.push((Cow::Owned(shorter), None));
        }
        for at in 0..self.forms.len() {
            let dated = match self.forms.get(at) {
                Some((name, None)) => without_day(name).map(|(name, day)| (name.to_owned(), day)),
                _ => None,
            };
            if let Some((name, day)) = dated.filter(|(name, _)| self.forms.iter().all(|(form, _)| form != name)) {
                self.forms.push((Cow::Owned(name), Some(day)));
            }
        }
    }

    /// The forms, most exact first.
    pub fn forms(&self) -> impl Iterator<Item = (&str, Option<Day>)> {
        self.forms.iter().map(|(name, day)| (name.as_ref(), *day))
    }
}

/// The last part of a cloud's path to a model.
fn without_path(name: &str) -> &str {
    if let Some(at) = name.rfind("/models/") {
        return name.get(at + "/models/".len()..).unwrap_or(name);
    }
    if name.starts_with("arn:") {
        return name.rsplit('/').next().unwrap_or(name);
    }
    name.strip_prefix("models/").unwrap_or(name)
}

/// The name without a cloud's version of its interface: `-v1`, `-v2:0`.
fn without_version(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once("-v")?;
    let mut parts = number.split(':');
    let digits = |part: Option<&str>| part.is_none_or(|part| !part.is_empty() && part.len() <= 2 && is_digits(part));
    (digits(parts.next()) && digits(parts.next()) && parts.next().is_none()).then_some(name)
}

/// The name without the day of a snapshot, and that day: `-2024-08-06`, `-20250514`, `@20250514`.
fn without_day(name: &str) -> Option<(&str, Day)> {
    let short = |name: &'_ str| -> Option<(usize, Day)> {
        let at = name.len().checked_sub(9)?;
        let rest = name.get(at..)?;
        let digits = rest.strip_prefix(['-', '@'])?;
        Some((at, day(digits.get(..4)?, digits.get(4..6)?, digits.get(6..)?)?))
    };
    let long = |name: &'_ str| -> Option<(usize, Day)> {
        let at = name.len().checked_sub(11)?;
        let mut parts = name.get(at..)?.strip_prefix('-')?.split('-');
        Some((at, day(parts.next()?, parts.next()?, parts.next()?)?))
    };
    let (at, day) = short(name).or_else(|| long(name))?;
    Some((name.get(..at)?, day))
}

fn day(year: &str, month: &str, day: &str) -> Option<Day> {
    if year.len() != 4 || month.len() != 2 || day.len() != 2 || ![year, month, day].into_iter().all(is_digits) {
        return None;
    }
    let (year, month, day): (u32, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    (YEARS.contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then_some(year * 10_000 + month * 100 + day)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A day as the list writes it, `2026-08-21`.
pub fn read_day(text: &str) -> Option<Day> {
    let mut parts = text.split('-');
    day(parts.next()?, parts.next()?, parts.next()?).filter(|_| parts.next().is_none())
}
