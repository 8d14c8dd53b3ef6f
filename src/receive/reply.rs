//! Answers: their bodies, and what success says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use iris_core::model::Lane;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsPartialSuccess, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::json;

use super::fault::shortened;
use crate::ingest::Accepted;

/// A body that is known whole, with trailers when gRPC wants them.
#[derive(Debug, Default)]
pub(super) struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Reply {
    /// A body without trailers.
    pub(super) fn of(data: Bytes) -> Self {
        Self { data: (!data.is_empty()).then_some(data), trailers: None }
    }

    /// A body and trailers.
    pub(super) fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { data: Some(data), trailers: Some(trailers) }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.data.take().map(Frame::data).or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

/// `Export<Signal>ServiceResponse` in protobuf; `partial_success` only when something was rejected.
/// Source: <https://opentelemetry.io/docs/specs/otlp/#partial-success>.
pub(super) fn success_protobuf(lane: Lane, accepted: &Accepted) -> Vec<u8> {
    let Some((rejected, error_message)) = partial(accepted) else { return Vec::new() };
    match lane {
        Lane::Traces => {
            let partial_success = Some(ExportTracePartialSuccess { rejected_spans: rejected, error_message });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Lane::Logs => {
            let partial_success = Some(ExportLogsPartialSuccess { rejected_log_records: rejected, error_message });
            ExportLogsServiceResponse { partial_success }.encode_to_vec()
        }
        Lane::Metrics => {
            let partial_success = Some(ExportMetricsPartialSuccess { rejected_data_points: rejected, error_message });
            ExportMetricsServiceResponse { partial_success }.encode_to_vec()
        }
    }
}

/// The same in JSON, where a 64-bit number is a string.
pub(super) fn success_json(lane: Lane, accepted: &Accepted) -> Bytes {
    let Some((rejected, message)) = partial(accepted) else { return Bytes::from_static(b"{}") };
    let key = match lane {
        Lane::Traces => "rejectedSpans",
        Lane::Logs => "rejectedLogRecords",
        Lane::Metrics => "rejectedDataPoints",
    };
    json!({ "partialSuccess": { key: rejected.to_string(), "errorMessage": message } }).to_string().into()
}

fn partial(accepted: &Accepted) -> Option<(i64, String)> {
    let message = shortened(accepted.message.clone().unwrap_or_default());
    let rejected = i64::try_from(accepted.rejected).unwrap_or(i64::MAX);
    (rejected > 0 || !message.is_empty()).then_some((rejected, message))
}
