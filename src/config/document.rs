//! The configuration described: `config/iris.yaml` and `docs/configuration.md`, made of the defaults and of the comments
//! beside the code that obeys each key.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Config, FLAT};

/// One key.
struct Key {
    path: String,
    depth: usize,
    doc: String,
    default: Value,
    is_section: bool,
}

fn keys() -> Vec<Key> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut found = Vec::new();
    walk(&schema, &defaults, "", 0, &mut found);
    found
}

fn walk(schema: &Value, defaults: &Value, place: &str, depth: usize, found: &mut Vec<Key>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        let path = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        let doc = field.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
        let default = defaults.get(name).cloned().unwrap_or_default();
        let is_section = default.is_object() && field.get("properties").is_some();
        found.push(Key { path: path.clone(), depth, doc, default: default.clone(), is_section });
        if is_section {
            walk(field, &default, &path, depth + 1, found);
        }
    }
}

/// A configuration file in which every key stands with its default.
pub fn yaml() -> String {
    let mut text = String::from(
        "# Every key with its default. A file needs only what it changes; a key that does not exist is refused by name.\n\
         # Written by `IRIS_BLESS=1 cargo test --workspace configuration_is_documented`.\n",
    );
    for key in keys() {
        let indent = "  ".repeat(key.depth);
        let name = key.path.rsplit('.').next().unwrap_or_default();
        if key.depth == 0 {
            text.push('\n');
        }
        for line in wrapped(&key.doc, 110 - indent.len()) {
            let _ = writeln!(text, "{indent}# {line}");
        }
        let _ = match key.is_section {
            true => writeln!(text, "{indent}{name}:"),
            false => writeln!(text, "{indent}{name}: {}", key.default),
        };
    }
    text
}

/// The documentation page.
pub fn page() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         <!-- Written by `IRIS_BLESS=1 cargo test --workspace configuration_is_documented` from the comments beside the code. -->\n\n\
         Defaults, then a file (`--config`, else `config.yaml` or `config.json` in the home folder), then the environment, then flags \
         (`--set KEY=VALUE`); the later wins. In a file, `${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` are filled in once. Every key \
         can be set as `IRIS__SECTION__KEY`; lists and mappings only in a file. A key that does not exist is an error that names the nearest \
         valid one. `iris-sidecar check-config` prints what is in effect, secrets as `[set]`. [`config/iris.yaml`](../config/iris.yaml) is a \
         file with every default.\n\n\
         ## Flat names\n\n| variable | key | sets |\n|---|---|---|\n",
    );
    for flat in FLAT {
        let _ = writeln!(text, "| `{}` | `{}` | {} |", flat.name, flat.key, flat.doc);
    }
    for key in keys() {
        if key.depth == 0 {
            let _ = writeln!(text, "\n## {}\n\n{}", key.path, key.doc);
            if key.is_section {
                text.push_str("\n| key | default | |\n|---|---|---|\n");
            } else {
                let _ = writeln!(text, "\nDefault: `{}`", key.default);
            }
        } else {
            let default = if key.is_section { String::new() } else { format!("`{}`", key.default) };
            let doc = key.doc.replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | {default} | {doc} |", key.path);
        }
    }
    text
}

/// Words in lines of at most so many characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Sources;

    /// Guarantees: the file and the page say what the code does.
    #[test]
    fn configuration_is_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (path, text) in [("config/iris.yaml", yaml()), ("docs/configuration.md", page())] {
            let path = root.join(path);
            if std::env::var_os("IRIS_BLESS").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let stored = std::fs::read_to_string(&path).unwrap_or_default();
            let command = "IRIS_BLESS=1 cargo test --workspace configuration_is_documented";
            assert!(stored == text, "{} is stale: {command}, then scripts/chart-docs", path.display());
        }
        for key in keys() {
            assert!(!key.doc.is_empty(), "{} has no comment", key.path);
        }
    }

    /// Guarantees: the file that stands in the repository is a file this program takes, and it changes nothing.
    #[test]
    fn the_documented_file_is_the_defaults() {
        let file = Some(("iris.yaml".to_owned(), yaml()));
        let loaded = Config::load(&Sources { file, ..Sources::default() }).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert_eq!(loaded.config.effective(), Config::default().effective());
    }

    /// Names of the tools' contract that set something in this program, as a file or the environment writes them.
    const NAMES: &[(&str, &str, &str)] = &[
        ("retention.days", "7", "retention.days"),
        ("retention.sweepIntervalHours", "3", "retention.sweep_interval_hours"),
        ("eval.criticalRules", "[\"no_stub_output\"]", "eval.critical_rules"),
        ("eval.nonCriticalRules", "[\"no_pii\"]", "eval.non_critical_rules"),
        ("IRIS_HOME", "/tmp/somewhere", "home"),
        ("IRIS_API_KEY", "0123456789", "web.api_key"),
        ("IRIS_OTEL_ENDPOINT", "http://localhost:9318", "export.endpoint"),
        ("IRIS_OTEL_SERVICE_NAME", "agents", "export.service_name"),
        ("IRIS_OTEL_HEADERS", "x-team=a,x-b=c", "export.headers"),
        ("IRIS_OTEL_TIMEOUT_MS", "500", "export.timeout_ms"),
        ("IRIS_ANTHROPIC_API_KEY", "0123456789", "judge.anthropic_api_key"),
        ("IRIS_OPENAI_API_KEY", "sk-0123456789", "judge.openai_api_key"),
        ("IRIS_LLM_JUDGE_MAX_COST_USD_PER_EVAL", "0.1", "judge.default_usd_call"),
        ("IRIS_CITATION_ALLOW_FETCH", "1", "citations.fetch"),
        ("IRIS_CITATION_DOMAINS", "example.org,example.net", "citations.allow_domains"),
    ];

    #[test]
    fn every_name_of_the_contract_works() {
        let defaults = Config::default().effective();
        for (name, value, key) in NAMES {
            let mut sources = Sources::default();
            match name.starts_with("IRIS_") {
                true => sources.env.push(((*name).to_owned(), (*value).to_owned())),
                false => {
                    let (section, key) = name.split_once('.').unwrap();
                    sources.file = Some(("f.yaml".to_owned(), format!("{section}: {{{key}: {value}}}")));
                }
            }
            let loaded = Config::load(&sources).unwrap_or_else(|problems| panic!("{name}: {problems}"));
            assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
            let pointer = format!("/{}", key.replace('.', "/"));
            let (before, after) = (defaults.pointer(&pointer), loaded.config.effective());
            assert_ne!(before, after.pointer(&pointer), "{name} changes nothing");
        }
    }
}
