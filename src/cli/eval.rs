//! `eval`: judge JSON Lines of `evaluate_output` arguments in this process, without a sidecar.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use iris_core::contract::{EvaluateOutputArgs, parse};
use iris_core::evaluate::{self, Identity, Subject};
use iris_core::model::{Evaluation, Tenant, VerdictState};

use super::text::{Paint, inert};
use super::{Format, Settings, Stop};
use crate::rulebook::Rulebook;
use crate::serve::LIMIT_SETTING;
use crate::tools;

/// Judge outputs from JSON Lines, without a sidecar.
#[derive(Debug, Args)]
pub(super) struct Eval {
    /// File with one evaluate_output call a line (`{"output": ..., "input": ...}`), `-` for standard input
    file: String,
    /// How to print: a line a verdict, or a JSON object a line
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Exit with 1 when a verdict is this, or worse
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something is wrong
    Fail,
    /// It cannot be said, or something is wrong
    Unknown,
}

impl Eval {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let config = self.settings.load()?;
        let input: Box<dyn BufRead> = match self.file.as_str() {
            "-" => Box::new(io::stdin().lock()),
            path => {
                Box::new(BufReader::new(File::open(path).map_err(|error| Stop::usage(format!("{path}: {error}")))?))
            }
        };
        let rulebook = Rulebook::built_in();
        let mut output = io::stdout().lock();
        // Where the lines go to a terminal they are the progress.
        let progress = super::progress("lines judged");
        if io::stdout().is_terminal() {
            progress.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let (mut judged, mut tripped, mut is_read) = (0_usize, 0_usize, true);
        for (index, line) in lines(input, config.mcp.message_bytes()).enumerate() {
            let line = line.map_err(|error| Stop::usage(format!("{}: line {}: {error}", self.file, index + 1)))?;
            if line.trim().is_empty() {
                continue;
            }
            let evaluation = judge(&line, &config.eval, &rulebook, index)
                .map_err(|why| Stop::usage(format!("{}: line {}: {why}", self.file, index + 1)))?;
            judged += 1;
            progress.inc(1);
            tripped += usize::from(self.trips(evaluation.state));
            if !is_read {
                continue;
            }
            match self.print(&mut output, index, &evaluation) {
                // Nobody reads on; the exit code is still asked for.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.fail_on.is_some() => is_read = false,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                done => done?,
            }
        }
        if judged == 0 {
            return Err(Stop::usage(format!("{}: nothing to judge", self.file)));
        }
        Ok(if tripped > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn trips(&self, state: VerdictState) -> bool {
        match self.fail_on {
            None => false,
            Some(FailOn::Fail) => state == VerdictState::Fail,
            Some(FailOn::Unknown) => state != VerdictState::Pass,
        }
    }

    fn print(&self, output: &mut impl Write, index: usize, evaluation: &Evaluation) -> io::Result<()> {
        if self.format == Format::Json {
            serde_json::to_writer(&mut *output, &tools::reply(evaluation))?;
            return output.write_all(b"\n");
        }
        let verdict = evaluate::compose(evaluation);
        let state = evaluation.state.as_str();
        let (word, room) = (Paint::of_stdout().state(state), " ".repeat("unknown".len() - state.len()));
        let by = inert(&verdict.by.join(", "));
        writeln!(output, "line {:<6} {word}{room}  {:<26} {by}", index + 1, verdict.basis.as_str())
    }
}

fn judge(line: &str, settings: &evaluate::Settings, rulebook: &Rulebook, index: usize) -> Result<Evaluation, String> {
    let args = arguments(line)?;
    let identity = Identity {
        id: format!("line-{}", index + 1),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    };
    let (tools, expected) = tools::expectations(&args);
    let subject = Subject {
        output: args.output.as_deref(),
        input: args.input.as_deref(),
        expected: args.expected.as_deref(),
        tool_calls: args.tool_calls.as_deref(),
        tools_catalogue: tools.as_ref(),
        expected_trajectory: expected.as_ref(),
        cost_usd: args.cost_usd,
        token_usage: args.token_usage,
        ..Subject::default()
    };
    let eval_type = args.eval_type.unwrap_or_default();
    let ruleset = rulebook.snapshot(&Tenant::local()).with_inline(args.inline_rules());
    Ok(evaluate::evaluate(&ruleset, &subject, settings, eval_type, identity, crate::telemetry::now()))
}

/// What evaluate_output takes, as it takes it; less what only a store can give.
fn arguments(line: &str) -> Result<EvaluateOutputArgs, String> {
    let value = serde_json::from_str(line).map_err(|error| format!("not JSON: column {}", error.column()))?;
    let args: EvaluateOutputArgs = parse(value).map_err(|error| error.message)?;
    if args.trace_id.is_some() {
        return Err("trace_id: there is no store here; give output, input and tool_calls themselves".to_owned());
    }
    Ok(args)
}

/// Lines of bounded length, without their ends.
fn lines(mut input: impl BufRead, bytes_max: usize) -> impl Iterator<Item = io::Result<String>> {
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        // One more for the end of the line.
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        match io::Read::take(&mut input, limit).read_until(b'\n', &mut bytes) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.len() > bytes_max {
            return Some(Err(io::Error::other(format!("longer than {bytes_max} bytes ({LIMIT_SETTING})"))));
        }
        Some(String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guarantees: what the tool refuses before it looks at its store is refused here in the same words.
    #[test]
    fn nothing_is_judged_that_the_tool_refuses() {
        for (line, words) in [
            (r#"{"output":"x","eval_typ":"safety"}"#, "eval_typ"),
            (r#"{"output":"x","eval_type":"safe"}"#, "eval_type"),
            (r#"{"output":"x","cost_usd":-1}"#, "cost_usd"),
            (r#"{"output":"x","token_usage":{"total_tokens":-3}}"#, "token_usage.total_tokens"),
            (r#"{"output":"x","token_usage":{"tokens":3}}"#, "tokens"),
            (r#"{"output":"x","tool_calls":[{"tool_name":" "}]}"#, "tool_calls[0].tool_name"),
            (r#"{"output":"x","tool_calls":[{"tool_name":"t","latency_ms":-1}]}"#, "tool_calls[0].latency_ms"),
            (r#"{"output":"x","tool_calls":[{"tool_name":"t","args":{}}]}"#, "args"),
            (r#"{"input":"x"}"#, "output"),
            (r#"{"trace_id":"nonsense"}"#, "trace_id"),
            (r#"{"output":"x","trace_id":"0af7651916cd43dd8448eb211c80319c"}"#, "no store here"),
            (r#"["x"]"#, "object"),
            (r#""x""#, "object"),
            ("x", "not JSON"),
        ] {
            let refused = arguments(line).unwrap_err();
            assert!(refused.contains(words), "{line}: {refused}");
        }
        assert!(arguments(r#"{"output":"x","cost_usd":0,"tool_calls":[]}"#).is_ok());
    }

    #[test]
    fn a_line_of_just_the_limit_is_read_and_a_longer_one_is_not() {
        let read = |text: &'static str| lines(text.as_bytes(), 4).map(Result::ok).take(3).collect::<Vec<_>>();
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(read("abcd\n\nefgh"), [line("abcd"), line(""), line("efgh")]);
        assert_eq!(read("ab\nabcde\n")[..2], [line("ab"), None]);
    }
}
