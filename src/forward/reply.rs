//! How many items a downstream says it will never take: `partial_success`, in either encoding.
//!
//! The three signals' messages have one shape: field 1 holds the count in its field 1.
//! Source: <https://github.com/open-telemetry/opentelemetry-proto/tree/main/opentelemetry/proto/collector>.

use bytes::BytesMut;
use prost::Message as _;

/// An answer longer than this is not read on. Source: the exporter part of
/// <https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md>.
pub(super) const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// So much of an answer is kept; what is wanted of it takes a few bytes.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// An answer as it comes in: its beginning, and how long it is.
#[derive(Default)]
pub(super) struct AnswerBytes {
    kept: BytesMut,
    total: usize,
}

impl AnswerBytes {
    /// Takes the next piece; false when the answer is over the limit.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        let room = KEPT_BYTES_MAX - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        self.total = self.total.saturating_add(piece.len());
        self.total <= ANSWER_BYTES_MAX
    }

    /// Its beginning.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Reply {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
}

/// From a protobuf answer; 0 when it says nothing of the kind or cannot be read.
pub(super) fn rejected_in_protobuf(reply: &[u8]) -> u64 {
    let partial = Reply::decode(reply).ok().and_then(|reply| reply.partial_success);
    partial.and_then(|partial| u64::try_from(partial.rejected).ok()).unwrap_or(0)
}

/// From a JSON answer; 0 when it says nothing of the kind or cannot be read.
pub(super) fn rejected_in_json(reply: &[u8]) -> u64 {
    let reply: serde_json::Value = serde_json::from_slice(reply).unwrap_or_default();
    let partial = &reply["partialSuccess"];
    ["rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"]
        .iter()
        .find_map(|key| partial[*key].as_u64().or_else(|| partial[*key].as_str()?.parse().ok()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::{logs, metrics, trace};

    use super::*;

    #[test]
    fn the_three_signals_have_one_shape() {
        let traces = trace::v1::ExportTraceServiceResponse {
            partial_success: Some(trace::v1::ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "x".into(),
            }),
        };
        let logs = logs::v1::ExportLogsServiceResponse {
            partial_success: Some(logs::v1::ExportLogsPartialSuccess {
                rejected_log_records: 4,
                error_message: "x".into(),
            }),
        };
        let metrics = metrics::v1::ExportMetricsServiceResponse {
            partial_success: Some(metrics::v1::ExportMetricsPartialSuccess {
                rejected_data_points: 5,
                error_message: "x".into(),
            }),
        };
        assert_eq!(rejected_in_protobuf(&traces.encode_to_vec()), 3);
        assert_eq!(rejected_in_protobuf(&logs.encode_to_vec()), 4);
        assert_eq!(rejected_in_protobuf(&metrics.encode_to_vec()), 5);
        assert_eq!(rejected_in_protobuf(b""), 0);
        assert_eq!(rejected_in_protobuf(b"\xff\xff\xff"), 0);
    }

    #[test]
    fn json_counts_are_numbers_or_texts() {
        assert_eq!(rejected_in_json(br#"{"partialSuccess":{"rejectedSpans":"7","errorMessage":"x"}}"#), 7);
        assert_eq!(rejected_in_json(br#"{"partialSuccess":{"rejectedDataPoints":8}}"#), 8);
        assert_eq!(rejected_in_json(b"{}"), 0);
        assert_eq!(rejected_in_json(b"<html>"), 0);
    }
}
