//! Requests to test with, and the generated messages behind one face.

use iris_core::model::Lane;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::{DecodeError, Message};

/// A request of any signal.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Traces(Traces),
    Logs(Logs),
    Metrics(Metrics),
}

impl Request {
    pub fn decode(lane: Lane, body: &[u8]) -> Result<Self, DecodeError> {
        Ok(match lane {
            Lane::Traces => Self::Traces(Traces::decode(body)?),
            Lane::Logs => Self::Logs(Logs::decode(body)?),
            Lane::Metrics => Self::Metrics(Metrics::decode(body)?),
        })
    }

    pub fn from_json(lane: Lane, body: &[u8]) -> serde_json::Result<Self> {
        Ok(match lane {
            Lane::Traces => Self::Traces(serde_json::from_slice(body)?),
            Lane::Logs => Self::Logs(serde_json::from_slice(body)?),
            Lane::Metrics => Self::Metrics(serde_json::from_slice(body)?),
        })
    }

    pub fn to_json(&self) -> Vec<u8> {
        match self {
            Self::Traces(request) => serde_json::to_vec(request),
            Self::Logs(request) => serde_json::to_vec(request),
            Self::Metrics(request) => serde_json::to_vec(request),
        }
        .unwrap()
    }

    /// Spans, records or data points.
    pub fn items(&self) -> u64 {
        let count = match self {
            Self::Traces(request) => {
                let scopes = request.resource_spans.iter().flat_map(|group| &group.scope_spans);
                scopes.map(|scope| scope.spans.len()).sum::<usize>()
            }
            Self::Logs(request) => {
                let scopes = request.resource_logs.iter().flat_map(|group| &group.scope_logs);
                scopes.map(|scope| scope.log_records.len()).sum()
            }
            Self::Metrics(request) => {
                let scopes = request.resource_metrics.iter().flat_map(|group| &group.scope_metrics);
                scopes.flat_map(|scope| &scope.metrics).map(|metric| points(metric.data.as_ref())).sum()
            }
        };
        count as u64
    }
}

fn points(data: Option<&Data>) -> usize {
    match data {
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
        None => 0,
    }
}

/// A captured or published request.
pub struct Case {
    pub name: String,
    pub lane: Lane,
    pub body: Vec<u8>,
}

/// The cases in `tests/cases/otlp/good` whose name ends so.
pub fn good(extension: &str) -> Vec<Case> {
    let folder = format!("{}/../../tests/cases/otlp/good", env!("CARGO_MANIFEST_DIR"));
    let mut cases: Vec<Case> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let lane = match name.as_str() {
                name if name.ends_with(".logs.pb") => Lane::Logs,
                "upstream-logs.json" | "upstream-events.json" => Lane::Logs,
                name if name.ends_with("metrics.pb") || name == "upstream-metrics.json" => Lane::Metrics,
                _ => Lane::Traces,
            };
            Case { body: std::fs::read(&path).unwrap(), name, lane }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

pub fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(Any::StringValue(value.to_owned())) }),
        key_strindex: 0,
    }
}

/// A span with good ids made from `id`, which is not 0.
pub fn span(id: u32) -> Span {
    let mut trace_id = [0u8; 16];
    trace_id[12..].copy_from_slice(&id.to_be_bytes());
    Span {
        trace_id: trace_id.to_vec(),
        span_id: trace_id[8..].to_vec(),
        name: format!("span {id}"),
        attributes: vec![text("k", "v")],
        ..Default::default()
    }
}
