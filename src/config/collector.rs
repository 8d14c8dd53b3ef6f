//! A file in the collector's shape (`receivers`, `exporters`, `extensions`, `service`) as settings of this program: what
//! an operator that manages collectors writes for one works here too.
//!
//! What has no counterpart and changes nothing that is kept is left out with a warning. A processor or receiver that
//! would have changed or brought data is refused: nothing must be sent on that a filter was to hold back.
//! Source: <https://opentelemetry.io/docs/collector/configuration/>.

use serde_json::{Map, Value, json};

use super::keys;

/// The sections of that shape.
const SECTIONS: [&str; 6] = ["receivers", "processors", "exporters", "extensions", "connectors", "service"];

/// The extension that holds settings of this program as they are written elsewhere.
const OWN: &str = "iris";

/// Processors without a counterpart that change nothing in the data.
const HARMLESS: [(&str, &str); 2] = [
    ("batch", "messages are sent as they came"),
    ("memory_limiter", "memory is limited by the cgroup, and senders are told to wait"),
];

/// Whether a file has that shape.
pub fn is_shaped_so(tree: &Value) -> bool {
    tree.as_object().is_some_and(|fields| fields.keys().any(|name| SECTIONS.contains(&name.as_str())))
}

/// What a file came to.
#[derive(Debug, Default)]
pub struct Translated {
    /// The settings.
    pub tree: Value,
    /// What was left out.
    pub warnings: Vec<String>,
    /// What cannot be.
    pub problems: Vec<String>,
}

/// The settings that a file in that shape stands for.
pub fn translate(file: &Value) -> Translated {
    let mut told = Translated { tree: Value::Object(Map::new()), ..Translated::default() };
    let foreign = file.as_object().into_iter().flat_map(Map::keys).filter(|name| !SECTIONS.contains(&name.as_str()));
    let foreign: Vec<&str> = foreign.map(String::as_str).collect();
    if !foreign.is_empty() {
        told.problems.push(format!(
            "{}: stands beside the collector's sections; settings of this program belong in extensions.{OWN}",
            foreign.join(", ")
        ));
    }
    let used = Used::of(file);
    receivers(file, &used, &mut told);
    processors(&used, &mut told);
    exporters(file, &used, &mut told);
    extensions(file, &mut told);
    service(file, &mut told);
    told
}

/// The names that pipelines name.
struct Used {
    receivers: Vec<String>,
    processors: Vec<String>,
    exporters: Vec<String>,
}

impl Used {
    fn of(file: &Value) -> Self {
        let pipelines = file.pointer("/service/pipelines").and_then(Value::as_object);
        let named = |kind: &str| {
            let lists =
                pipelines.into_iter().flat_map(Map::values).filter_map(|pipeline| pipeline.get(kind)?.as_array());
            let mut names: Vec<String> = lists.flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect();
            names.sort();
            names.dedup();
            names
        };
        Self { receivers: named("receivers"), processors: named("processors"), exporters: named("exporters") }
    }
}

/// `otlp/traces` is of the type `otlp`.
fn kind(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

fn section<'a>(file: &'a Value, section: &str, name: &str) -> &'a Value {
    file.get(section).and_then(|all| all.get(name)).unwrap_or(&Value::Null)
}

fn receivers(file: &Value, used: &Used, told: &mut Translated) {
    let doors = [("grpc", "receive.grpc.listen", 4317), ("http", "receive.http.listen", 4318)];
    for (_, listen, _) in doors {
        keys::set(&mut told.tree, listen, json!("off"));
    }
    for name in &used.receivers {
        if kind(name) != "otlp" {
            told.problems.push(format!("receivers.{name}: only otlp is received here"));
            continue;
        }
        let place = format!("receivers.{name}.protocols");
        let protocols = section(file, "receivers", name).get("protocols");
        for (protocol, listen, port) in doors {
            let Some(settings) = protocols.and_then(|all| all.get(protocol)) else { continue };
            let endpoint = settings
                .get("endpoint")
                .and_then(Value::as_str)
                .map_or_else(|| format!("localhost:{port}"), str::to_owned);
            keys::set(&mut told.tree, listen, Value::String(endpoint));
            door(&format!("{place}.{protocol}"), protocol, settings, told);
        }
    }
    if used.receivers.is_empty() {
        told.problems.push("service.pipelines: no pipeline names a receiver, so nothing would be received".to_owned());
    }
}

fn door(place: &str, protocol: &str, settings: &Value, told: &mut Translated) {
    for (name, value) in settings.as_object().into_iter().flatten() {
        match name.as_str() {
            "endpoint" => {}
            "max_recv_msg_size_mib" => bytes_max(value.as_u64().map(|mib| mib << 20), place, name, told),
            "max_request_body_size" => bytes_max(value.as_u64().filter(|bytes| *bytes > 0), place, name, told),
            "tls" => {
                for (setting, file) in value.as_object().into_iter().flatten() {
                    match setting.as_str() {
                        "cert_file" | "key_file" | "client_ca_file" => {
                            keys::set(&mut told.tree, &format!("receive.tls.{setting}"), file.clone());
                        }
                        // Files are read again whenever they change.
                        "reload_interval" => {}
                        other => told.problems.push(format!("{place}.tls.{other}: does not exist here")),
                    }
                }
            }
            "cors" if protocol == "http" => {
                let origins = value.get("allowed_origins").cloned().unwrap_or_else(|| json!([]));
                keys::set(&mut told.tree, "receive.http.allowed_origins", origins);
            }
            "auth" => told.problems.push(format!("{place}.auth: set extensions.{OWN}.receive.token_file instead")),
            other => told.warnings.push(format!("{place}.{other} is left out: it has no counterpart here")),
        }
    }
}

fn bytes_max(bytes: Option<u64>, place: &str, name: &str, told: &mut Translated) {
    let known = told.tree.pointer("/receive/body_bytes_max").and_then(Value::as_u64);
    match bytes {
        // The smaller one holds at both doors.
        Some(bytes) => {
            let bytes = known.map_or(bytes, |known| known.min(bytes));
            keys::set(&mut told.tree, "receive.body_bytes_max", bytes.into());
        }
        None => told.problems.push(format!("{place}.{name}: must be a number above 0")),
    }
}

fn processors(used: &Used, told: &mut Translated) {
    for name in &used.processors {
        match HARMLESS.iter().find(|(known, _)| *known == kind(name)) {
            Some((_, why)) => told.warnings.push(format!("processors.{name} is left out: {why}")),
            None => told.problems.push(format!(
                "processors.{name}: does not exist here, and what it changes would be kept and sent on unchanged; run it in a \
                 collector behind this one"
            )),
        }
    }
}

fn exporters(file: &Value, used: &Used, told: &mut Translated) {
    let mut endpoint: Option<&str> = None;
    for name in &used.exporters {
        let protocol = match kind(name) {
            "otlp" | "otlp_grpc" => "grpc",
            "otlphttp" | "otlp_http" => "http",
            "debug" | "logging" | "nop" => {
                told.warnings.push(format!("exporters.{name} is left out: nothing is printed"));
                continue;
            }
            _ => {
                told.problems.push(format!("exporters.{name}: only otlp, otlp_grpc, otlphttp and otlp_http send on"));
                continue;
            }
        };
        if let Some(first) = endpoint.replace(name) {
            told.problems.push(format!("exporters.{name}: there is one downstream, and {first} is one already"));
            continue;
        }
        keys::set(&mut told.tree, "forward.protocol", json!(protocol));
        let settings = section(file, "exporters", name);
        let is_plain = settings.pointer("/tls/insecure") == Some(&Value::Bool(true));
        match settings.get("endpoint").and_then(Value::as_str) {
            Some(endpoint) if endpoint.contains("://") => {
                keys::set(&mut told.tree, "forward.endpoint", json!(endpoint));
            }
            Some(endpoint) => {
                let scheme = if is_plain { "http" } else { "https" };
                keys::set(&mut told.tree, "forward.endpoint", json!(format!("{scheme}://{endpoint}")));
            }
            None => told.problems.push(format!("exporters.{name}.endpoint: must be set")),
        }
        exporter(&format!("exporters.{name}"), settings, told);
    }
}

fn exporter(place: &str, settings: &Value, told: &mut Translated) {
    for (name, value) in settings.as_object().into_iter().flatten() {
        match name.as_str() {
            "endpoint" => {}
            "headers" => keys::set(&mut told.tree, "forward.headers", value.clone()),
            "compression" => keys::set(&mut told.tree, "forward.compression", value.clone()),
            "timeout" => time(value, &format!("{place}.timeout"), "forward.timeout_ms", told),
            "tls" => {
                for (setting, value) in value.as_object().into_iter().flatten() {
                    match setting.as_str() {
                        "insecure" => {}
                        "ca_file" | "cert_file" | "key_file" => {
                            keys::set(&mut told.tree, &format!("forward.{setting}"), value.clone());
                        }
                        other => told.problems.push(format!("{place}.tls.{other}: does not exist here")),
                    }
                }
            }
            "retry_on_failure" => {
                for (setting, key) in [("initial_interval", "retry_initial_ms"), ("max_interval", "retry_max_ms")] {
                    if let Some(value) = value.get(setting) {
                        time(value, &format!("{place}.retry_on_failure.{setting}"), &format!("forward.{key}"), told);
                    }
                }
            }
            "sending_queue" => {
                told.warnings
                    .push(format!("{place}.sending_queue is left out: what is not sent yet waits in the journal"));
            }
            "auth" => told.problems.push(format!("{place}.auth: set headers instead")),
            other => told.warnings.push(format!("{place}.{other} is left out: it has no counterpart here")),
        }
    }
}

/// A time such as `5s`, `200ms` or `1m30s`.
fn time(value: &Value, place: &str, key: &str, told: &mut Translated) {
    match value.as_str().and_then(milliseconds) {
        Some(milliseconds) => keys::set(&mut told.tree, key, milliseconds.into()),
        None => told.problems.push(format!("{place}: must be a time such as 5s or 200ms")),
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut all = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        all += number
            * match rest.get(..unit)? {
                "ms" => 1.0,
                "s" => 1000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                _ => return None,
            };
        rest = rest.get(unit..)?;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "digits have no sign, and a cast stops at the end"
    )]
    (all >= 1.0).then_some(all as u64)
}

fn extensions(file: &Value, told: &mut Translated) {
    let named = file.pointer("/service/extensions").and_then(Value::as_array);
    for name in named.into_iter().flatten().filter_map(Value::as_str) {
        let settings = section(file, "extensions", name);
        match kind(name) {
            OWN => merge(&mut told.tree, settings),
            "health_check" | "healthcheckv2" => {
                let endpoint = settings.get("endpoint").and_then(Value::as_str).unwrap_or("localhost:13133");
                keys::set(&mut told.tree, "ops.listen", json!(endpoint));
                let path = settings.get("path").and_then(Value::as_str).unwrap_or("/");
                if !["/", "/livez", "/readyz"].contains(&path) {
                    told.problems.push(format!("extensions.{name}.path: valid: /, /livez, /readyz"));
                }
            }
            _ => told.warnings.push(format!("extensions.{name} is left out: it does not exist here")),
        }
    }
    let is_named = named.into_iter().flatten().any(|name| name.as_str().is_some_and(|name| kind(name) == OWN));
    if file.pointer("/extensions/iris").is_some() && !is_named {
        told.problems.push(format!("service.extensions: name {OWN}, or its settings are not used"));
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn service(file: &Value, told: &mut Translated) {
    let Some(telemetry) = file.pointer("/service/telemetry") else { return };
    if let Some(level) = telemetry.pointer("/logs/level").and_then(Value::as_str) {
        keys::set(&mut told.tree, "logging.level", json!(level.to_ascii_lowercase()));
    }
    if let Some(encoding) = telemetry.pointer("/logs/encoding").and_then(Value::as_str) {
        let format = if encoding == "json" { "json" } else { "text" };
        keys::set(&mut told.tree, "logging.format", json!(format));
    }
    if telemetry.get("metrics").is_some() {
        told.warnings.push("service.telemetry.metrics is left out: metrics are at /metrics of ops.listen".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Sources};
    use super::*;

    fn load(text: &str) -> Result<super::super::Loaded, super::super::Problems> {
        let env = vec![("POD_IP".to_owned(), "10.1.2.3".to_owned())];
        Config::load(&Sources {
            file: Some(("env:OTEL_CONFIG".to_owned(), text.to_owned())),
            env,
            ..Sources::default()
        })
    }

    /// What an operator writes for a sidecar that sends on to a gateway.
    const USUAL: &str = r#"
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "localhost:4317", max_recv_msg_size_mib: 8}
      http:
processors:
  batch: {}
  memory_limiter: {check_interval: 1s, limit_percentage: 80}
exporters:
  debug: {}
  otlp_grpc/gateway:
    endpoint: gateway.observability:4317
    headers: {x-team: "007"}
    timeout: 1m2.5s
    tls: {ca_file: /etc/ca.crt}
    retry_on_failure: {initial_interval: 500ms, max_interval: 20s}
    sending_queue: {queue_size: 5000}
extensions:
  health_check: {endpoint: "0.0.0.0:13133"}
  iris: {redact: {enabled: true}, web: {listen: "off"}}
service:
  extensions: [health_check, iris]
  telemetry: {logs: {level: DEBUG, encoding: json}, metrics: {level: detailed}}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp_grpc/gateway, debug]}
    logs: {receivers: [otlp], exporters: [otlp_grpc/gateway]}
"#;

    #[test]
    fn what_is_written_for_a_collector_works() {
        let loaded = load(USUAL).unwrap();
        let config = loaded.config.effective();
        for (key, wanted) in [
            ("/receive/grpc/listen", json!("127.0.0.1:4317")),
            ("/receive/http/listen", json!("127.0.0.1:4318")),
            ("/receive/body_bytes_max", json!(8 << 20)),
            ("/forward/endpoint", json!("https://gateway.observability:4317")),
            ("/forward/protocol", json!("grpc")),
            ("/forward/timeout_ms", json!(62_500)),
            ("/forward/ca_file", json!("/etc/ca.crt")),
            ("/forward/retry_initial_ms", json!(500)),
            ("/forward/retry_max_ms", json!(20_000)),
            ("/forward/headers", json!({"x-team": "[set]"})),
            ("/ops/listen", json!("0.0.0.0:13133")),
            ("/web/listen", json!("off")),
            ("/redact/enabled", json!(true)),
            ("/logging/level", json!("debug")),
            ("/logging/format", json!("json")),
        ] {
            assert_eq!(config.pointer(key), Some(&wanted), "{key}");
        }
        for left_out in
            ["processors.batch", "processors.memory_limiter", "exporters.debug", "sending_queue", "telemetry.metrics"]
        {
            assert!(
                loaded.warnings.iter().any(|warning| warning.contains(left_out)),
                "{left_out}: {:?}",
                loaded.warnings
            );
        }
    }

    #[test]
    fn a_door_that_is_not_named_is_closed() {
        let text = "receivers: {otlp: {protocols: {http: {endpoint: 'localhost:14318'}}}}\n\
                    service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}";
        let config = load(text).unwrap().config.effective();
        assert_eq!(config.pointer("/receive/grpc/listen"), Some(&json!("off")));
        assert_eq!(config.pointer("/receive/http/listen"), Some(&json!("127.0.0.1:14318")));
        assert_eq!(config.pointer("/forward/endpoint"), Some(&Value::Null));
    }

    /// Guarantees: an address that others can reach is no reason to let everybody in, and what would have changed the
    /// data is never left out in silence.
    #[test]
    fn what_must_not_be_left_out_is_refused() {
        let refused = |text: &str, with: &str| {
            let problems = load(&USUAL.replace(with, text)).unwrap_err().to_string();
            assert!(!problems.is_empty());
            problems
        };
        let open = refused(
            "grpc: {endpoint: \"${env:POD_IP}:4317\", max_recv_msg_size_mib: 8}",
            "grpc: {endpoint: \"localhost:4317\", max_recv_msg_size_mib: 8}",
        );
        assert!(open.contains("10.1.2.3:4317") && open.contains("receive.token_file"), "{open}");
        let filter = refused("processors: [redaction, batch]", "processors: [memory_limiter, batch]");
        assert!(filter.contains("processors.redaction"), "{filter}");
        let receiver = refused("logs: {receivers: [filelog]", "logs: {receivers: [otlp]");
        assert!(receiver.contains("receivers.filelog"), "{receiver}");
        let two = refused("exporters: [otlp_grpc/gateway, otlphttp]", "exporters: [otlp_grpc/gateway, debug]");
        assert!(two.contains("one downstream"), "{two}");
        let typo = refused("iris: {redcat: {enabled: true}", "iris: {redact: {enabled: true}");
        assert!(typo.contains("did you mean `redact`"), "{typo}");
        let unnamed = refused("extensions: [health_check]", "extensions: [health_check, iris]");
        assert!(unnamed.contains("service.extensions"), "{unnamed}");
        let beside = refused("\nweb: {listen: \"off\"}\nreceivers:\n", "\nreceivers:\n");
        assert!(beside.contains("extensions.iris"), "{beside}");
    }

    #[test]
    fn times_are_read_as_the_collector_writes_them() {
        for (text, wanted) in [
            ("5s", Some(5000)),
            ("200ms", Some(200)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("5", None),
            ("s", None),
            ("", None),
            ("0s", None),
            ("5 parsecs", None),
        ] {
            assert_eq!(milliseconds(text), wanted, "{text}");
        }
    }
}
