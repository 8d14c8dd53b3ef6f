//! The built binary on free ports in a home of its own: started, asked, killed, started again.
//!
//! Its environment is empty but for what the test sets, so nothing of the machine decides a test. Where it listens
//! is read from `runtime.json`; it is waited for until `/readyz` says that it can acknowledge. What it logs goes to
//! a file that a failing start prints.
#![allow(dead_code)] // each test needs a part of it

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::collector::RawCodec;

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A certificate or key of `tests/cases/tls`.
pub fn tls(name: &str) -> Vec<u8> {
    std::fs::read(tls_path(name)).unwrap()
}

/// Where it lies.
pub fn tls_path(name: &str) -> String {
    format!("{}/tests/cases/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A sidecar that runs, or ran. Dropping it kills it and deletes its home.
pub struct Iris {
    home: TempDir,
    settings: BTreeMap<String, String>,
    child: Option<Child>,
    /// The control group that it starts in.
    group: Option<PathBuf>,
    runtime: Value,
    client: reqwest::Client,
}

impl Iris {
    /// Starts `serve` with these environment variables, such as `("IRIS__FORWARD__PROTOCOL", "http")`, beside free
    /// ports on every door, and waits until it is ready.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let mut iris = Self::prepared(settings);
        iris.start_again().await;
        iris
    }

    /// The same, without starting it: for tests that put files into its home first.
    pub fn prepared(settings: &[(&str, &str)]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(&tls("ca.crt")).unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).tls_certs_only([ca]);
        let client = client.build().unwrap();
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("home")).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let owner_only = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(home.path().join("home"), owner_only).unwrap();
        }
        Self { home, settings, child: None, group: None, runtime: Value::Null, client }
    }

    /// Changes an environment variable for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.insert(name.to_owned(), value.to_owned());
    }

    /// The next start is in this control group.
    pub fn set_group(&mut self, group: &Path) {
        self.group = Some(group.to_owned());
    }

    /// Its home, with the journal, the database and `runtime.json`.
    pub fn home(&self) -> PathBuf {
        self.home.path().join("home")
    }

    /// Starts it in the same home, on other ports, and waits until it is ready.
    ///
    /// # Panics
    /// When it runs already, ends, or is not ready within a minute; prints what it logged.
    pub async fn start_again(&mut self) {
        self.spawn();
        self.until_ready().await;
    }

    /// Starts it where it cannot write where it is found: waits until it says so.
    pub async fn start_unfound(&mut self) {
        self.spawn();
        self.until_started(async |iris| iris.log().contains("do not find this sidecar")).await;
    }

    /// Waits until a sidecar that was started is ready.
    pub async fn until_ready(&mut self) {
        self.until_started(Self::is_ready).await;
    }

    async fn until_started(&mut self, holds: impl AsyncFn(&mut Self) -> bool) {
        let deadline = Instant::now() + START_MAX;
        while !holds(self).await {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "it ended at start with {}:\n{}", ended.unwrap(), self.log());
            assert!(Instant::now() < deadline, "it is not ready within a minute:\n{}", self.log());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Starts it and kills it so long after, ready or not.
    pub fn start_for(&mut self, time: Duration) {
        self.spawn();
        std::thread::sleep(time);
        self.kill();
    }

    /// Starts it where it must refuse to: waits for its end and returns how, and what it said.
    pub async fn start_refused(&mut self) -> (ExitStatus, String) {
        self.spawn();
        (self.ended().await, self.log())
    }

    fn spawn(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let log = File::options().create(true).append(true).open(self.log_path()).unwrap();
        let program = env!("CARGO_BIN_EXE_iris-sidecar");
        let mut command = match &self.group {
            None => Command::new(program),
            Some(group) => {
                // It is in the group before it is itself, under the same process id.
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(group).arg(program);
                shell
            }
        };
        command.arg("serve").env_clear().stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        for door in ["RECEIVE__GRPC", "RECEIVE__HTTP", "WEB", "OPS"] {
            command.env(format!("IRIS__{door}__LISTEN"), "127.0.0.1:0");
        }
        command.env("IRIS_HOME", self.home()).env("RUST_BACKTRACE", "1").envs(&self.settings);
        self.runtime = Value::Null;
        self.child = Some(command.spawn().unwrap());
    }

    async fn is_ready(&mut self) -> bool {
        let pid = self.pid();
        let written = std::fs::read(self.home().join("runtime.json")).unwrap_or_default();
        let runtime: Value = serde_json::from_slice(&written).unwrap_or_default();
        // Another pid is that of the one before.
        if runtime["pid"].as_u64() != Some(pid.into()) {
            return false;
        }
        self.runtime = runtime;
        let scheme = if self.settings.contains_key("IRIS__OPS__TLS__CERT_FILE") { "https" } else { "http" };
        let asked = self.client.get(format!("{scheme}://{}/readyz", self.door("ops"))).send().await;
        asked.is_ok_and(|answer| answer.status() == 200)
    }

    /// The address of a door: `grpc`, `http`, `web` or `ops`.
    ///
    /// # Panics
    /// When `runtime.json` does not say.
    pub fn door(&self, name: &str) -> SocketAddr {
        let port_on_loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let said = &self.runtime[name];
        let number = said.as_u64().and_then(|port| u16::try_from(port).ok()).map(port_on_loopback);
        let text = said.as_str().and_then(|text| text.trim_start_matches("http://").parse().ok());
        number.or(text).unwrap_or_else(|| panic!("runtime.json does not say where {name} is: {}", self.runtime))
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it does not run").id()
    }

    /// What it logged in all its runs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        Path::new(self.home.path()).join("log")
    }

    /// Posts a body to `/v1/{lane}` of the OTLP/HTTP door: status and answer, or an error when there was none.
    pub async fn post(&self, lane: &str, kind: &str, body: Bytes) -> reqwest::Result<(u16, Bytes)> {
        let url = format!("http://{}/v1/{lane}", self.door("http"));
        let answer = self.client.post(url).header("content-type", kind).body(body).send().await?;
        Ok((answer.status().as_u16(), answer.bytes().await?))
    }

    /// Exports a protobuf body over OTLP/gRPC on a connection of its own.
    pub async fn export(&self, lane: &str, body: Bytes) -> Result<Bytes, tonic::Status> {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", self.door("grpc"))).unwrap();
        let channel = endpoint.connect().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
        let path = match lane {
            "traces" => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            "logs" => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            _ => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        };
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
        let request = tonic::Request::new(body);
        let answer = client.unary(request, PathAndQuery::from_static(path), RawCodec).await?;
        Ok(answer.into_inner())
    }

    /// Gets a path of a door: status and text.
    pub async fn get(&self, door: &str, path: &str) -> (u16, String) {
        let answer = self.client.get(format!("http://{}{path}", self.door(door))).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{error:?}\n{}", self.log()));
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Calls a tool over `POST /api/v1/tools/{name}`: status and reply.
    pub async fn tool(&self, name: &str, arguments: &Value) -> (u16, Value) {
        let url = format!("http://{}/api/v1/tools/{name}", self.door("web"));
        let answer = self.client.post(url).json(arguments).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Posts JSON to a path of a door: status and reply.
    pub async fn posted(&self, door: &str, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("http://{}{path}", self.door(door));
        let answer = self.client.post(url).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Waits until the JSON of a path holds what is wanted.
    ///
    /// # Panics
    /// When it does not within `within`; prints what it held last.
    pub async fn until(&self, door: &str, path: &str, within: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + within;
        loop {
            let (status, text) = self.get(door, path).await;
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            if wanted(&value) {
                return value;
            }
            let is_late = Instant::now() >= deadline;
            assert!(!is_late, "{path} is not as wanted within {within:?}: {status} {text}\n{}", self.log());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // An error means that it has ended by itself.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// SIGTERM, and waits until it has drained: how it ended.
    ///
    /// # Panics
    /// When it does not end within half a minute.
    pub async fn terminate(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.ended().await
    }

    async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + STOP_MAX;
        loop {
            let child = self.child.as_mut().expect("it does not run");
            if let Some(status) = child.try_wait().unwrap() {
                self.child = None;
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.log());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for Iris {
    fn drop(&mut self) {
        self.kill();
    }
}
