//! Numbers and times as people read them.

use std::time::Duration;

use iris_core::model::{Timestamp, VerdictState};

use super::markup::Markup;

/// What stands where nothing is known.
pub(super) const NONE: &str = "–";

/// A whole number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The same, when it is known.
pub(super) fn count_of(number: Option<u64>) -> String {
    number.map_or_else(|| NONE.to_owned(), count)
}

/// A number in few characters: `950`, `1.2k`, `34M`.
pub(super) fn short(number: f64) -> String {
    let (scaled, unit) = match number.abs() {
        size if size >= 999_500_000.0 => (number / 1e9, "G"),
        size if size >= 999_500.0 => (number / 1e6, "M"),
        size if size >= 1000.0 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    format!(
        "{}{unit}",
        plain(scaled, if scaled.abs() >= 100.0 || unit.is_empty() && scaled.fract() == 0.0 { 0 } else { 1 })
    )
}

/// A number with so many digits behind the point, without needless noughts.
pub(super) fn plain(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// US dollars: the smaller, the finer.
pub(super) fn usd(dollars: f64) -> String {
    match dollars.abs() {
        size if size >= 100.0 => format!("${dollars:.0}"),
        size if size >= 1.0 => format!("${dollars:.2}"),
        0.0 => "$0".to_owned(),
        size if size >= 0.01 => format!("${dollars:.3}"),
        size if size >= 0.000_001 => format!("${}", plain(dollars, 6)),
        _ => "<$0.000001".to_owned(),
    }
}

/// The same, when it is known.
pub(super) fn usd_of(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| NONE.to_owned(), usd)
}

/// A time span in milliseconds.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{} ms", plain(ms, 1)),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 59_950.0 => format!("{} s", plain(ms / 1000.0, if ms < 9950.0 { 2 } else { 1 })),
        ms if ms < 3_600_000.0 => format!("{} min", plain(ms / 60_000.0, 1)),
        ms => format!("{} h", plain(ms / 3_600_000.0, 1)),
    }
}

/// The same, when it is known.
pub(super) fn millis_of(ms: Option<f64>) -> String {
    ms.map_or_else(|| NONE.to_owned(), millis)
}

/// A share of a whole; of nothing there is none.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NONE.to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    match percent {
        percent if part < whole && percent >= 99.5 => ">99%".to_owned(),
        percent if part > 0 && percent < 0.5 => "<1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

/// Bytes.
pub(super) fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    for (unit, size) in [("GiB", 1024.0_f64.powi(3)), ("MiB", 1024.0_f64.powi(2)), ("KiB", 1024.0)] {
        if bytes >= size {
            return format!("{} {unit}", plain(bytes / size, 1));
        }
    }
    format!("{bytes} B")
}

/// How long ago.
pub(super) fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..5 => return "just now".to_owned(),
        5..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, if seconds < 172_800 { "day" } else { "days" }),
    };
    format!("{number} {unit} ago")
}

/// Date and time, UTC, to the second.
pub(super) fn absolute(time: Timestamp) -> String {
    let text = time.to_string();
    let (date, clock) = (text.get(..10).unwrap_or(&text), text.get(11..19).unwrap_or_default());
    format!("{date} {clock} UTC")
}

/// A time, relative in sight and absolute behind it.
pub(super) fn when(now: Timestamp, time: Timestamp) -> Markup {
    Markup::time(&time.to_string(), &absolute(time), &ago(now.since(time)))
}

/// The same of a time that was written down.
pub(super) fn when_text(now: Timestamp, text: &str) -> Markup {
    Timestamp::parse(text).map_or_else(|| Markup::text(text), |time| when(now, time))
}

/// A verdict in shape and word.
pub(super) fn verdict(state: Option<VerdictState>) -> Markup {
    match state {
        Some(VerdictState::Pass) => Markup::badge("pass", "✓", "pass"),
        Some(VerdictState::Fail) => Markup::badge("fail", "✕", "fail"),
        Some(VerdictState::Unknown) => Markup::badge("unknown", "?", "unknown"),
        None => Markup::badge("none", "·", "not judged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_easily() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([short(7.0), short(0.5), short(1000.0), short(1234.0)], ["7", "0.5", "1k", "1.2k"]);
        assert_eq!([short(123_456.0), short(999_600.0), short(2.5e9)], ["123k", "1M", "2.5G"]);
        assert_eq!(
            [usd(0.0), usd(0.000_3), usd(0.0123), usd(2.5), usd(150.0)],
            ["$0", "$0.0003", "$0.012", "$2.50", "$150"]
        );
        assert_eq!(
            [millis(0.26), millis(850.4), millis(1234.0), millis(78_000.0)],
            ["0.3 ms", "850 ms", "1.23 s", "1.3 min"]
        );
        assert_eq!([bytes(12), bytes(2048), bytes(3 << 20)], ["12 B", "2 KiB", "3 MiB"]);
    }

    #[test]
    fn nothing_of_nothing_is_no_share() {
        assert_eq!(
            [share(0, 0), share(0, 3), share(3, 3), share(999, 1000), share(1, 1000)],
            [NONE, "0%", "100%", ">99%", "<1%"]
        );
    }

    #[test]
    fn times_are_told_relative_and_absolute() {
        let time = Timestamp::parse("2026-12-01T10:11:12.345Z").unwrap();
        assert_eq!(absolute(time), "2026-12-01 10:11:12 UTC");
        for (seconds, told) in [
            (0, "just now"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (7200, "2 h ago"),
            (86_400, "1 day ago"),
            (260_000, "3 days ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), told);
        }
        let shown = when(time.after(Duration::from_secs(90)), time).to_string();
        assert!(shown.contains("1 min ago") && shown.contains("2026-12-01 10:11:12 UTC"), "{shown}");
    }
}
