//! A client that starts `iris-sidecar mcp` and speaks to it on standard streams.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// An `iris-sidecar mcp` and the client that started it. Dropping it kills it.
pub struct Client {
    pub child: Child,
    pub input: Option<ChildStdin>,
    answers: Receiver<Value>,
    next: u64,
}

impl Client {
    pub fn start(home: &Path, settings: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"))
            .arg("mcp")
            .env_clear()
            .env("IRIS_HOME", home)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (output, (tell, answers)) = (child.stdout.take().unwrap(), channel());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let answer = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not JSON": line }));
                if tell.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, answers, next: 1 }
    }

    /// The same, greeted.
    pub fn greeted(home: &Path, settings: &[(&str, &str)]) -> Self {
        let mut client = Self::start(home, settings);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = client.ask("initialize", &params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "iris-sidecar", "{answer}");
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    pub fn write(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a request and does not wait.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub fn answer(&self) -> Value {
        self.answers.recv_timeout(SOON).expect("an answer in time")
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool until the store is open: its reply.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
            let reply = &answer["result"]["structuredContent"];
            if reply["error"]["retryable"] != true {
                assert!(answer["result"]["isError"] != true, "{answer}");
                return reply.clone();
            }
            assert!(Instant::now() < deadline, "{answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(pid(&self.child), signal).unwrap();
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pid(child: &Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap()
}
