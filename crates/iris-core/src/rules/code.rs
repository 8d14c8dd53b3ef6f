//! Code inside an answer, by its lines: no parser, only what indentation and braces show.
//!
//! Everything is linear in the text and bounded in number.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Fences and functions that are looked at.
const FENCES_MAX: usize = 200;
const FUNCTIONS_MAX: usize = 200;
/// Lines of one function that are looked at.
const BODY_LINES_MAX: usize = 40;

fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}

/// The fenced stretches of a text.
#[derive(Debug)]
pub struct Fences(Vec<(Range<usize>, bool)>);

impl Fences {
    /// Finds them; one that is not closed reaches to the end.
    pub fn of(text: &str) -> Self {
        let mut found = Vec::new();
        let mut open: Option<(usize, bool)> = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let bare = line.trim_start();
            if bare.starts_with("```") || bare.starts_with("~~~") {
                match open.take() {
                    Some((start, diff)) => found.push((start..at, diff)),
                    None => open = Some((at + line.len(), bare.contains("diff") || bare.contains("patch"))),
                }
                if found.len() >= FENCES_MAX {
                    break;
                }
            }
            at += line.len();
        }
        found.extend(open.map(|(start, diff)| (start..text.len().max(start), diff)));
        Self(found)
    }

    fn around(&self, at: usize) -> Option<&(Range<usize>, bool)> {
        let next = self.0.partition_point(|(fence, _)| fence.end <= at);
        self.0.get(next).filter(|(fence, _)| fence.contains(&at))
    }

    /// Whether a place lies inside a fence.
    pub fn contains(&self, at: usize) -> bool {
        self.around(at).is_some()
    }

    /// Whether it lies inside the fence of a diff.
    pub fn is_diff(&self, at: usize) -> bool {
        self.around(at).is_some_and(|(_, diff)| *diff)
    }

    /// Whether it stands on a line that a diff takes away.
    pub fn is_removed(&self, text: &str, at: usize) -> bool {
        let line = text.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |end| end + 1);
        self.is_diff(at) && text.get(line..at).is_some_and(|before| before.starts_with('-'))
    }

    /// Whether it stands inside a docstring of its fence.
    pub fn is_docstring(&self, text: &str, at: usize) -> bool {
        let Some((fence, _)) = self.around(at) else { return false };
        let before = text.get(fence.start..at).unwrap_or("");
        before.matches("\"\"\"").count() % 2 == 1 || before.matches("'''").count() % 2 == 1
    }

    /// The code of a text with where it begins: its fences, or all of it when it has none.
    pub fn code<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        if self.0.is_empty() {
            return vec![(0, text)];
        }
        let taken = self.0.iter().filter(|(_, diff)| !diff);
        taken.filter_map(|(fence, _)| Some((fence.start, text.get(fence.clone())?))).collect()
    }
}

/// Whether an answer says that all is done.
pub fn claims_done(text: &str) -> bool {
    static DONE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:fully (?:implemented|functional|working|complete)|production[- ]ready|ready (?:to (?:deploy|use|ship|run|merge|go)|for (?:production|deployment|use))|(?:is|are|it['’]s|now) (?:complete|finished|done|working|live|implemented)(?-u:\b)|complete (?:implementation|solution|module)|all (?:[a-z0-9]+ ){0,3}(?:tests )?pass(?:es|ed|ing)?|works (?:as expected|end[- ]to[- ]end|correctly)|implemented (?:all|everything|the)|everything (?:is|works)|personali[sz]ed|green across)(?-u:\b)",
        )
    });
    DONE.is_match(text)
}

/// A function: its parameters, its body's lines, and where it begins.
struct Function<'t> {
    parameters: Vec<&'t str>,
    body: Vec<&'t str>,
    at: usize,
    end: usize,
}

static DEF: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?P<i>[ \t]*)(?:async )?def (?P<n>\w+)\((?P<p>[^)\n]{0,200})\)(?:\s*->[^:\n]{1,80})?:[ \t]*(?P<o>[^\n]*)$",
    )
});
static BRACED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^[ \t]*(?:export |default |public |private |protected |static |async |pub |const |final |override )*(?:function|func|fn|def|(?:int|void|bool|boolean|String|string|double|float|Task|List<\w+>) )\s*(?P<n>\w+)\s*\((?P<p>[^)\n]{0,200})\)[^{\n;]{0,100}\{[ \t]*(?P<o>[^\n]*)$",
    )
});

fn parameters(list: &str) -> Vec<&str> {
    list.split(',')
        .map(|one| one.trim().trim_start_matches(['*', '&', '.']))
        .filter_map(|one| {
            let name = one.split([':', '=', ' ']).next()?;
            // "int count": the name is the last word where the type comes first.
            let typed = one.contains(' ') && !one.contains(':') && !one.contains('=');
            let name = if typed { one.rsplit(' ').next()? } else { name };
            (!name.is_empty() && !matches!(name, "self" | "cls" | "this" | "_" | "/")).then_some(name)
        })
        .collect()
}

fn python_functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    if !code.contains("def ") {
        return found;
    }
    for head in DEF.captures_iter(code).take(FUNCTIONS_MAX) {
        let (Some(whole), Some(list), Some(indent)) = (head.get(0), head.name("p"), head.name("i")) else { continue };
        let inline = head.name("o").map_or("", |one| one.as_str()).trim();
        let mut body = if inline.is_empty() || inline.starts_with('#') { Vec::new() } else { vec![inline] };
        let mut end = whole.end();
        if body.is_empty() {
            for line in code.get(whole.end()..).unwrap_or("").split_inclusive('\n').skip(1).take(BODY_LINES_MAX) {
                let own = line.len() - line.trim_start().len();
                if !line.trim().is_empty() && own <= indent.len() {
                    break;
                }
                end += line.len();
                body.push(line.trim());
            }
        }
        found.push(Function {
            parameters: parameters(list.as_str()),
            body,
            at: whole.start(),
            end: end.min(code.len()),
        });
    }
    found
}

fn braced_functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    if !code.contains('{') {
        return found;
    }
    for head in BRACED.captures_iter(code).take(FUNCTIONS_MAX) {
        let (Some(whole), Some(list)) = (head.get(0), head.name("p")) else { continue };
        let opened = whole.end() - head.name("o").map_or(0, |one| one.len());
        let mut depth = 1_i32;
        let mut end = opened;
        let mut body = Vec::new();
        for line in code.get(opened..).unwrap_or("").split_inclusive('\n').take(BODY_LINES_MAX) {
            for c in line.chars() {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                if depth == 0 {
                    break;
                }
            }
            end += line.len();
            if depth <= 0 {
                let kept = line.trim().trim_end_matches('}').trim();
                if !kept.is_empty() {
                    body.push(kept);
                }
                break;
            }
            body.push(line.trim());
        }
        if depth <= 0 {
            found.push(Function {
                parameters: parameters(list.as_str()),
                body,
                at: whole.start(),
                end: end.min(code.len()),
            });
        }
    }
    found
}

fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = python_functions(code);
    found.extend(braced_functions(code));
    found
}

/// Lines of a body that do something: neither comments nor a docstring.
fn statements<'t>(body: &[&'t str]) -> Vec<&'t str> {
    let mut kept = Vec::new();
    let mut in_docstring = false;
    for line in body {
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        if in_docstring {
            in_docstring = quotes % 2 == 0;
            continue;
        }
        if line.starts_with("\"\"\"") || line.starts_with("'''") {
            in_docstring = quotes % 2 == 1;
            continue;
        }
        if !line.is_empty() && !line.starts_with(['#', '*']) && !line.starts_with("//") && !line.starts_with("/*") {
            kept.push(*line);
        }
    }
    kept
}

/// Functions of which nothing but `pass` or nothing at all is the body.
pub fn empty_functions(code: &[(usize, &str)]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (start, text) in code {
        for one in python_functions(text) {
            let does = statements(&one.body);
            if !one.body.is_empty() && does.iter().all(|line| matches!(*line, "pass" | "pass;")) {
                found.push(start + one.at..start + one.end);
            }
        }
    }
    found
}

/// Functions that take something and give a literal back without looking at it.
pub fn constant_functions(code: &[(usize, &str)]) -> Vec<Range<usize>> {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"^return\s*(?:\{.*|\[.*|\(.*|["'`].*|-?[0-9][0-9_.]*;?|true;?|false;?|True|False)$"#)
    });
    let mut found = Vec::new();
    for (start, text) in code {
        for one in functions(text) {
            let does = statements(&one.body);
            let all = does.join("\n");
            let uses = one
                .parameters
                .iter()
                .any(|name| all.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *name));
            let returns = does.iter().filter(|line| line.starts_with("return")).count();
            let first = does.first().is_some_and(|line| LITERAL.is_match(line));
            let logs =
                |line: &&&str| ["print(", "console.log(", "log.", "logger."].iter().any(|call| line.starts_with(call));
            let literal_after_log = does.iter().find(|line| !logs(line)).is_some_and(|line| LITERAL.is_match(line));
            if !one.parameters.is_empty() && !uses && returns == 1 && (first || literal_after_log) {
                found.push(start + one.at..start + one.end);
            }
        }
    }
    found
}

/// One docstring over three functions or more.
pub fn same_docstrings(code: &[(usize, &str)]) -> Option<Range<usize>> {
    static DOC: LazyLock<Regex> = LazyLock::new(|| pattern(r#""""([^"\n]{12,200})""""#));
    let mut counts: BTreeMap<&str, (usize, Range<usize>)> = BTreeMap::new();
    for (start, text) in code {
        for doc in DOC.captures_iter(text).take(FUNCTIONS_MAX).filter_map(|found| found.get(1)) {
            let entry = counts.entry(doc.as_str().trim()).or_insert((0, start + doc.start()..start + doc.end()));
            entry.0 += 1;
        }
    }
    counts.into_values().find(|(count, _)| *count >= 3).map(|(_, place)| place)
}

/// A test run of which every test was skipped, in an answer that says they pass.
pub fn skipped_tests(text: &str) -> Option<Range<usize>> {
    static SKIPPED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:tests?:?\s+)?([1-9][0-9]*) skipped[^\n]{0,40}?([1-9][0-9]*) total|collected ([1-9][0-9]*) items?[^=]{0,200}?=+ ([1-9][0-9]*) skipped",
        )
    });
    static PASSED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:pass(?:es|ed|ing)?|green|success)(?-u:\b)"));
    let found = SKIPPED.captures(text)?;
    let number = |at: usize| found.get(at).map(|one| one.as_str());
    let all = number(1).is_some() && number(1) == number(2) || number(3).is_some() && number(3) == number(4);
    let place = found.get(0)?.range();
    (all && PASSED.is_match(text)).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_what_a_function_does_not_do() {
        let whole = |text: &'static str| vec![(0, text)];
        assert_eq!(
            empty_functions(&whole("def a(x):\n    \"\"\"Does.\"\"\"\n    pass\n\ndef b(x):\n    return x\n")).len(),
            1
        );
        assert_eq!(constant_functions(&whole("def w(city):\n    return {\"t\": 72}\n")).len(), 1);
        assert_eq!(constant_functions(&whole("def w(city):\n    return {\"t\": city}\n")).len(), 0);
        assert_eq!(
            constant_functions(&whole("function send(to, text) {\n  console.log('x');\n  return { ok: true };\n}\n"))
                .len(),
            1
        );
        assert_eq!(constant_functions(&whole("fn area(w: u32) -> u32 {\n    w * 2\n}\n")).len(), 0);
        assert!(same_docstrings(&whole("\"\"\"Performs its operation.\"\"\" \"\"\"Performs its operation.\"\"\" \"\"\"Performs its operation.\"\"\"")).is_some());
        assert!(skipped_tests("Tests: 6 skipped, 6 total\nAll passing.").is_some());
        assert!(skipped_tests("Tests: 1 skipped, 6 total\nAll passing.").is_none());
    }

    #[test]
    fn knows_its_fences() {
        let text = "a\n```diff\n- # old\n+ new\n```\nb\n```\nc";
        let fences = Fences::of(text);
        assert!(fences.is_removed(text, text.find("old").unwrap()));
        assert!(!fences.contains(text.find("\nb").unwrap() + 1));
        assert!(fences.contains(text.find('c').unwrap().max(text.len() - 1)));
    }
}
