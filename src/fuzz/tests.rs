#[path = "../../crates/iris-core/src/fuzz/run.rs"]
mod run;

use run::hold;

#[test]
fn journal_frames() {
    hold("journal_frames", &[], &["\u{9e}IRJ", "IRJ\x01\x01", "\0\0\0\0\0\0\0\0"], super::journal_frames);
}

#[test]
fn rule_file() {
    let words = ["\"rules\":[", "{\"id\":", "\"version\":2", "null,", "\"pattern\":\"", "(?i)", "{1,1000}", ",}", "]"];
    hold("rule_file", &[], &words, super::rule_file);
}

#[test]
fn config_yaml() {
    let words =
        ["forward:\n", "${env:COLLECTOR}", "${file:/dev/null}", "&a ", "*a", "<<: ", "!!binary ", "|\n  ", "- "];
    hold("config_yaml", &[], &words, super::config_yaml);
}

#[test]
fn sql_guard() {
    let words = ["SELECT ", " FROM traces", ";", "--", "/*", "(", " UNION ", "read_csv(", "'", "\"", "WITH ", "::JSON"];
    hold("sql_guard", &[], &words, super::sql_guard);
}

#[test]
fn mcp_message() {
    let words = ["\"jsonrpc\":\"2.0\"", "\"id\":", "\"method\":", "\"result\":{}", "\n", "[[", "1e400", "\u{feff}"];
    hold("mcp_message", &[], &words, super::mcp_message);
}
