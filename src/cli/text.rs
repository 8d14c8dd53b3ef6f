//! What is printed: text that others wrote made harmless, tables, and times as people say them.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use iris_core::model::Timestamp;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Stop;

/// Text that an agent, a user or a tool wrote, on one line and without anything that a terminal or a log viewer would
/// obey: control characters, escapes, marks that turn the direction of writing, characters that cannot be seen.
pub(super) fn inert(text: &str) -> String {
    let seen = |letter: char| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if is_unseen(letter) => '\u{fffd}',
        letter => letter,
    };
    let text: String = text.chars().map(seen).collect();
    // Runners of continuous integration obey the first at the beginning of a line, whatever white space stands before it,
    // and the second anywhere. Source: the workflow commands of GitHub Actions and its runner.
    let text = text.replace("##[", "## [");
    if text.trim_start().starts_with("::") { text.replacen("::", ": :", 1) } else { text }
}

/// The same, of several lines.
pub(super) fn inert_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(inert)
}

/// Sources: Unicode's general categories Cc and Cf, the tag characters, and what is no character.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// The beginning of a text that takes so many columns.
pub(super) fn short(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |letter: &char| {
        taken += letter.width().unwrap_or(0);
        taken < columns
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Colours, for people at a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(bool);

impl Paint {
    /// For standard output, as it and `NO_COLOR` (<https://no-color.org>) say.
    pub(super) fn of_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(io::stdout().is_terminal() && !refused)
    }

    /// None at all.
    #[cfg(test)]
    pub(super) const fn plain() -> Self {
        Self(false)
    }

    /// A verdict's word.
    pub(super) fn state(self, state: &str) -> String {
        let colour = match state {
            "pass" => 32,
            "fail" => 31,
            "unknown" => 33,
            _ => return state.to_owned(),
        };
        self.colour(state, colour)
    }

    /// What went wrong.
    pub(super) fn error(self, text: &str) -> String {
        self.colour(text, 31)
    }

    /// What stands behind.
    pub(super) fn faint(self, text: &str) -> String {
        self.colour(text, 2)
    }

    fn colour(self, text: &str, colour: u8) -> String {
        if self.0 { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table whose columns are as wide as their widest cell.
pub(super) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    /// A column whose cells are verdicts.
    verdict: Option<usize>,
}

impl Table {
    pub(super) fn new(columns: &[(&'static str, Align)]) -> Self {
        let verdict = columns.iter().position(|(name, _)| *name == "VERDICT");
        Self { columns: columns.to_vec(), rows: Vec::new(), verdict }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn print(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
                cells.chain([self.columns[at].0.width()]).max().unwrap_or_default()
            })
            .collect();
        let head: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        for (number, row) in std::iter::once(&head).chain(&self.rows).enumerate() {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let room = " ".repeat(widths.get(at).copied().unwrap_or_default().saturating_sub(cell.width()));
                let painted = match (number, self.verdict) {
                    (0, _) => paint.faint(cell),
                    (_, Some(verdict)) if verdict == at => paint.state(cell),
                    _ => cell.clone(),
                };
                let align = self.columns.get(at).map_or(Align::Left, |(_, align)| *align);
                let (before, after) = if align == Align::Left { ("", room.as_str()) } else { (room.as_str(), "") };
                line.push_str(&format!("{}{before}{painted}{after}", if at == 0 { "" } else { "  " }));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time to search from: a moment, a date, or so long ago (`90m`, `24h`, `7d`). As the API takes it.
pub(super) fn since(text: &str, now: Timestamp) -> Result<String, Stop> {
    let unit = text.chars().last().unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Ok(text.to_owned()),
    };
    let count: u64 = text.trim_end_matches(unit).parse().map_err(|_| {
        Stop::usage(format!(
            "{}: write a time such as 2026-12-01T09:30:00Z, or how long ago, such as 90m, 24h or 7d",
            inert(text)
        ))
    })?;
    let ago = Duration::from_secs(count.saturating_mul(seconds)).as_nanos();
    let then = now.as_unix_nanos().saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX));
    Ok(Timestamp::from_unix_nanos(then).to_string())
}

/// Milliseconds as people say them.
pub(super) fn took(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 1000.0 => format!("{millis:.0} ms"),
        Some(millis) if millis < 120_000.0 => format!("{:.1} s", millis / 1000.0),
        Some(millis) => format!("{:.0} min", millis / 60_000.0),
    }
}

/// US dollars, with as many places as the sum needs.
pub(super) fn dollars(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 1.0 => format!("${value:.2}"),
        Some(value) if value >= 0.01 || value == 0.0 => format!("${value:.4}"),
        Some(value) => format!("${value:.6}"),
    }
}

/// A number with at most four digits behind the point.
pub(super) fn figure(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// When something began, to the second: `2026-12-01 09:30:00`.
pub(super) fn began(value: &Value) -> String {
    let text = inert(value.as_str().unwrap_or("-"));
    match text.get(..19).filter(|_| text.ends_with('Z')) {
        Some(seconds) => seconds.replacen('T', " ", 1),
        None => short(&text, 19),
    }
}

/// A field of text, harmless and short.
pub(super) fn cell(value: &Value, columns: usize) -> String {
    short(&inert(value.as_str().unwrap_or("-")), columns)
}

/// The names of a list, with commas.
pub(super) fn names(list: &Value) -> String {
    let names: Vec<&str> =
        list.as_array().map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    inert(&names.join(", "))
}

/// Prints a value as JSON, for programs.
pub(super) fn json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// What is left to say once output was written: a reader that stopped reading is no failure.
pub(super) fn printed(done: io::Result<()>) -> Result<(), Stop> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(inert("a\x1b[31mred\x07\u{9b}2J"), "a\u{fffd}[31mred\u{fffd}\u{fffd}2J");
        assert_eq!(inert("\u{202e}evil\u{2066}\u{200b}"), "\u{fffd}evil\u{fffd}\u{fffd}");
        assert_eq!(inert("one\ntwo\r\n::error::x"), "one two  ::error::x");
        assert_eq!(inert("  ::error::x ::y"), "  : :error::x ::y");
        assert_eq!(inert("a ##[set-env name=x]y"), "a ## [set-env name=x]y");
        assert_eq!(inert("שלום 日本 🙂 é"), "שלום 日本 🙂 é");
    }

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("日本語です", 6), "日本…");
        assert_eq!(short("日本語です", 1), "…");
    }

    #[test]
    fn times_are_moments_or_so_long_ago() {
        let now = Timestamp::parse("2026-12-01T12:00:00Z").unwrap();
        assert_eq!(since("90m", now).unwrap(), "2026-12-01T10:30:00.000Z");
        assert_eq!(since("2026-11-01", now).unwrap(), "2026-11-01");
        assert!(since("xh", now).is_err());
        assert!(since("999999999999999d", now).is_ok(), "long ago is the beginning");
    }

    #[test]
    fn moments_and_sums_are_whole() {
        assert_eq!(began(&Value::from("2026-12-01T09:30:07.123Z")), "2026-12-01 09:30:07");
        assert_eq!(began(&Value::Null), "-");
        let sums = [0.0, 0.000_032_4, 0.0123, 2.5].map(|sum| dollars(Some(sum)));
        assert_eq!(sums, ["$0.0000", "$0.000032", "$0.0123", "$2.50"]);
    }

    #[test]
    fn columns_stand_under_their_heads() {
        let mut table = Table::new(&[("NAME", Align::Left), ("VERDICT", Align::Left), ("COUNT", Align::Right)]);
        table.row(vec!["日本".to_owned(), "fail".to_owned(), "7".to_owned()]);
        table.row(vec!["a".to_owned(), "pass".to_owned(), "1200".to_owned()]);
        let mut out = Vec::new();
        table.print(&mut out, Paint(false)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "NAME  VERDICT  COUNT\n日本  fail         7\na     pass      1200\n");
    }
}
