//! `demo`: the main job in half a minute, on traffic that nobody here invented.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::{Settings, Stop};
use crate::config::Config;
use crate::demo::{CAPTURES, play};
use crate::door::Listen;
use crate::home::Runtime;
use crate::run;
use crate::tools::Judging;

/// The longest wait for every trace to be judged.
const JUDGED_MAX: Duration = Duration::from_secs(60);

/// What the demonstration's judge says, whatever it is asked.
const SCRIPT: [&str; 1] = [
    "{\"score\":0.9,\"rationale\":\"This is a script of the demonstration: no model read anything.\",\"dimensions\":{}}",
];

/// Play captured agent traffic through a sidecar in a temporary folder and show the verdicts.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// End after the table instead of serving until Ctrl-C
    #[arg(long)]
    exit: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Demo {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let mut config = self.settings.load()?;
        config.logging.level = crate::telemetry::Level::Warn;
        crate::telemetry::start(&config.logging);
        // Made here and now under a random name, for this user only: nobody can have put one there before.
        let folder = tempfile::Builder::new().prefix("iris-demo-").tempdir()?;
        let runtime = super::runtime()?;
        let done = runtime.block_on(self.show(config, &folder.path().join("home")));
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(folder);
        done.map_err(Stop::failed)?;
        Ok(ExitCode::SUCCESS)
    }

    async fn show(&self, mut config: Config, home: &std::path::Path) -> anyhow::Result<()> {
        for listen in [
            &mut config.receive.grpc.listen,
            &mut config.receive.http.listen,
            &mut config.web.listen,
            &mut config.ops.listen,
        ] {
            *listen = Listen::loopback(0);
        }
        // Neither what is configured nor what the environment says of a collector: these traces are nobody's.
        config.forward = crate::forward::Config::default();
        config.web.api_key = None;
        let begun = Instant::now();
        let mut out = io::stdout();
        let step =
            |out: &mut io::Stdout, text: String| writeln!(out, "{:>6.2} s  {text}", begun.elapsed().as_secs_f64());
        let script =
            Judging::scripted(SCRIPT.map(str::to_owned)).map_err(|problems| anyhow::anyhow!(problems.join("; ")))?;
        let sidecar = run::Sidecar::start_scripted(config, home, script).await?;
        let runtime = sidecar.runtime().clone();
        let web = runtime.web.clone().context("the web door is closed")?;
        step(
            &mut out,
            format!(
                "the sidecar is ready: OTLP/gRPC {}, OTLP/HTTP {}",
                shown(runtime.grpc.as_ref()),
                shown(runtime.http.as_ref())
            ),
        )?;
        let sent = play(runtime.http.as_deref().context("the OTLP/HTTP door is closed")?).await?;
        step(&mut out, format!("{sent} requests of {} agent runs are acknowledged: on disk, synced", CAPTURES.len()))?;
        let traces = self.judged(&web, &mut out, begun).await?;
        writeln!(out)?;
        table(&mut out, &traces)?;
        writeln!(out)?;
        scripted(&mut out, &web, &traces).await?;
        if !self.exit && out.is_terminal() {
            // From here on a signal ends it in order: who reads that it serves may end it at once.
            let signal = run::signal()?;
            addresses(&mut out, &runtime, &web)?;
            writeln!(out, "\nserving until Ctrl-C; everything is deleted then")?;
            out.flush()?;
            signal.await;
        } else {
            writeln!(out, "stopped: on a terminal, without --exit, it goes on serving and prints its addresses")?;
        }
        sidecar.drain().await;
        Ok(())
    }

    /// Waits until every trace is judged; says when the first verdict came.
    async fn judged(&self, web: &str, out: &mut io::Stdout, begun: Instant) -> anyhow::Result<Vec<Value>> {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).no_proxy().build()?;
        let mut first = true;
        loop {
            let reply = client.get(format!("http://{web}/api/v1/traces?limit=200")).send().await?;
            let traces = match reply.status().is_success() {
                true => reply.json::<Value>().await?["traces"].as_array().cloned().unwrap_or_default(),
                false => Vec::new(),
            };
            let settled =
                traces.iter().filter(|trace| trace["in_progress"] == false && trace["verdict"].is_object()).count();
            if settled > 0 && first {
                first = false;
                writeln!(out, "{:>6.2} s  the first verdict", begun.elapsed().as_secs_f64())?;
            }
            if settled >= CAPTURES.len() && settled == traces.len() {
                writeln!(
                    out,
                    "{:>6.2} s  {settled} traces are judged and stored in DuckDB",
                    begun.elapsed().as_secs_f64()
                )?;
                return Ok(traces);
            }
            anyhow::ensure!(
                begun.elapsed() < JUDGED_MAX,
                "only {settled} of {} traces were judged within {JUDGED_MAX:?}",
                CAPTURES.len()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Has one answer judged by the script, and says that it is one.
async fn scripted(out: &mut io::Stdout, web: &str, traces: &[Value]) -> anyhow::Result<()> {
    let Some(trace) = traces.iter().find(|trace| trace["output"].is_string()) else { return Ok(()) };
    let asked = json!({
        "output": trace["output"], "trace_id": trace["trace_id"], "template": "helpfulness", "model": "claude-haiku-4-5",
    });
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).no_proxy().build()?;
    let reply = client.post(format!("http://{web}/api/v1/tools/evaluate_with_llm_judge")).json(&asked).send().await?;
    let reply: Value = reply.error_for_status()?.json().await?;
    let answer = short(reply["raw_response_id"].as_str().unwrap_or("-"), 20);
    writeln!(
        out,
        "judge       a script, not a model, gave one answer {} of 1 ({answer}, {} USD); with a key of yours a model is asked\n",
        reply["score"], reply["cost_usd"],
    )?;
    Ok(())
}

fn shown(address: Option<&String>) -> &str {
    address.map_or("off", String::as_str)
}

fn table(out: &mut io::Stdout, traces: &[Value]) -> io::Result<()> {
    let colour = out.is_terminal();
    writeln!(
        out,
        "{:<34} {:<9} {:<9} {:<26} {:>7} {:>9}  ANSWER",
        "TRACE", "VERDICT", "TOOLS", "DECIDED BY", "TOKENS", "COST"
    )?;
    for trace in traces {
        let state = trace["verdict"]["state"].as_str().unwrap_or("-");
        let (on, off) = match (colour, state) {
            (true, "pass") => ("\x1b[32m", "\x1b[0m"),
            (true, "fail") => ("\x1b[31m", "\x1b[0m"),
            (true, _) => ("\x1b[33m", "\x1b[0m"),
            (false, _) => ("", ""),
        };
        let by: Vec<&str> = trace["verdict"]["by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let by =
            if by.is_empty() { trace["verdict"]["basis"].as_str().unwrap_or("-").to_owned() } else { by.join(", ") };
        let tools = trace["tool_calls"].as_array().map_or_else(|| "-".to_owned(), |calls| calls.len().to_string());
        let tokens =
            trace["token_usage"]["total_tokens"].as_u64().map_or_else(|| "-".to_owned(), |count| count.to_string());
        let cost = trace["cost_usd"].as_f64().map_or_else(|| "-".to_owned(), |cost| format!("${cost:.5}"));
        let name = short(trace["agent_name"].as_str().unwrap_or("-"), 16);
        let id = trace["trace_id"].as_str().and_then(|id| id.get(..16)).unwrap_or("-");
        let answer = short(trace["output"].as_str().unwrap_or("-"), 44);
        writeln!(out, "{id} {name:<17} {on}{state:<9}{off} {tools:<9} {by:<26} {tokens:>7} {cost:>9}  {answer}")?;
    }
    writeln!(
        out,
        "\nDECIDED BY: the rules or kinds of failure that a fail rests on; what an unknown lacks; clean: nothing speaks against it"
    )
}

/// One line of at most `limit` characters, without anything a terminal would obey.
fn short(text: &str, limit: usize) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= limit {
        return line;
    }
    line.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

fn addresses(out: &mut io::Stdout, runtime: &Runtime, web: &str) -> io::Result<()> {
    writeln!(out, "dashboard   http://{web}/")?;
    writeln!(out, "traces      http://{web}/api/v1/traces")?;
    writeln!(out, "MCP         http://{web}/mcp")?;
    writeln!(out, "state       http://{}/readyz?full", shown(runtime.ops.as_ref()))?;
    writeln!(out, "your agent  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", shown(runtime.http.as_ref()))?;
    writeln!(out, "            export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_SERVICE_NAME=my-agent")
}
