//! `metrics_service.proto` and `metrics.proto`.

use super::common::{ATTRIBUTE, RESOURCE, SCOPE};
use super::{Field, Kind, Message, SPAN_ID_OR_NONE, TRACE_ID_OR_NONE, Unit, many, one};

pub(super) static REQUEST: Message = Message::new(&REQUEST_FIELDS);
static REQUEST_FIELDS: [Field; 1] = [many(1, "resource_metrics", "resourceMetrics", Kind::Message(&RESOURCE_METRICS))];

static RESOURCE_METRICS: Message = Message::unit(&RESOURCE_METRICS_FIELDS, Unit::Resource);
static RESOURCE_METRICS_FIELDS: [Field; 3] = [
    one(1, "resource", "resource", Kind::Message(&RESOURCE)),
    many(2, "scope_metrics", "scopeMetrics", Kind::Message(&SCOPE_METRICS)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static SCOPE_METRICS: Message = Message::unit(&SCOPE_METRICS_FIELDS, Unit::Scope);
static SCOPE_METRICS_FIELDS: [Field; 3] = [
    one(1, "scope", "scope", Kind::Message(&SCOPE)),
    many(2, "metrics", "metrics", Kind::Message(&METRIC)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static METRIC: Message = Message::unit(&METRIC_FIELDS, Unit::Metric);
static METRIC_FIELDS: [Field; 9] = [
    one(1, "name", "name", Kind::Text),
    one(2, "description", "description", Kind::Text),
    one(3, "unit", "unit", Kind::Text),
    one(5, "gauge", "gauge", Kind::Message(&GAUGE)),
    one(7, "sum", "sum", Kind::Message(&SUM)),
    one(9, "histogram", "histogram", Kind::Message(&HISTOGRAM)),
    one(10, "exponential_histogram", "exponentialHistogram", Kind::Message(&EXPONENTIAL)),
    one(11, "summary", "summary", Kind::Message(&SUMMARY)),
    many(12, "metadata", "metadata", Kind::Message(&ATTRIBUTE)),
];

static GAUGE: Message = Message::new(&GAUGE_FIELDS);
static GAUGE_FIELDS: [Field; 1] = [many(1, "data_points", "dataPoints", Kind::Message(&NUMBER_POINT))];

static SUM: Message = Message::new(&SUM_FIELDS);
static SUM_FIELDS: [Field; 3] = [
    many(1, "data_points", "dataPoints", Kind::Message(&NUMBER_POINT)),
    one(2, "aggregation_temporality", "aggregationTemporality", Kind::Enum(&TEMPORALITY)),
    one(3, "is_monotonic", "isMonotonic", Kind::Bool),
];

static HISTOGRAM: Message = Message::new(&HISTOGRAM_FIELDS);
static HISTOGRAM_FIELDS: [Field; 2] = [
    many(1, "data_points", "dataPoints", Kind::Message(&HISTOGRAM_POINT)),
    one(2, "aggregation_temporality", "aggregationTemporality", Kind::Enum(&TEMPORALITY)),
];

static EXPONENTIAL: Message = Message::new(&EXPONENTIAL_FIELDS);
static EXPONENTIAL_FIELDS: [Field; 2] = [
    many(1, "data_points", "dataPoints", Kind::Message(&EXPONENTIAL_POINT)),
    one(2, "aggregation_temporality", "aggregationTemporality", Kind::Enum(&TEMPORALITY)),
];

static SUMMARY: Message = Message::new(&SUMMARY_FIELDS);
static SUMMARY_FIELDS: [Field; 1] = [many(1, "data_points", "dataPoints", Kind::Message(&SUMMARY_POINT))];

static TEMPORALITY: [(&str, i32); 3] = [
    ("AGGREGATION_TEMPORALITY_UNSPECIFIED", 0),
    ("AGGREGATION_TEMPORALITY_DELTA", 1),
    ("AGGREGATION_TEMPORALITY_CUMULATIVE", 2),
];

static NUMBER_POINT: Message = Message::unit(&NUMBER_POINT_FIELDS, Unit::Point);
static NUMBER_POINT_FIELDS: [Field; 7] = [
    one(2, "start_time_unix_nano", "startTimeUnixNano", Kind::Fixed64),
    one(3, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(4, "as_double", "asDouble", Kind::Double),
    many(5, "exemplars", "exemplars", Kind::Message(&EXEMPLAR)),
    one(6, "as_int", "asInt", Kind::Sfixed64),
    many(7, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(8, "flags", "flags", Kind::Uint32),
];

static HISTOGRAM_POINT: Message = Message::unit(&HISTOGRAM_POINT_FIELDS, Unit::Point);
static HISTOGRAM_POINT_FIELDS: [Field; 11] = [
    one(2, "start_time_unix_nano", "startTimeUnixNano", Kind::Fixed64),
    one(3, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(4, "count", "count", Kind::Fixed64),
    one(5, "sum", "sum", Kind::Double),
    many(6, "bucket_counts", "bucketCounts", Kind::Fixed64),
    many(7, "explicit_bounds", "explicitBounds", Kind::Double),
    many(8, "exemplars", "exemplars", Kind::Message(&EXEMPLAR)),
    many(9, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(10, "flags", "flags", Kind::Uint32),
    one(11, "min", "min", Kind::Double),
    one(12, "max", "max", Kind::Double),
];

static EXPONENTIAL_POINT: Message = Message::unit(&EXPONENTIAL_POINT_FIELDS, Unit::Point);
static EXPONENTIAL_POINT_FIELDS: [Field; 14] = [
    many(1, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(2, "start_time_unix_nano", "startTimeUnixNano", Kind::Fixed64),
    one(3, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(4, "count", "count", Kind::Fixed64),
    one(5, "sum", "sum", Kind::Double),
    one(6, "scale", "scale", Kind::Sint32),
    one(7, "zero_count", "zeroCount", Kind::Fixed64),
    one(8, "positive", "positive", Kind::Message(&BUCKETS)),
    one(9, "negative", "negative", Kind::Message(&BUCKETS)),
    one(10, "flags", "flags", Kind::Uint32),
    many(11, "exemplars", "exemplars", Kind::Message(&EXEMPLAR)),
    one(12, "min", "min", Kind::Double),
    one(13, "max", "max", Kind::Double),
    one(14, "zero_threshold", "zeroThreshold", Kind::Double),
];

static BUCKETS: Message = Message::new(&BUCKETS_FIELDS);
static BUCKETS_FIELDS: [Field; 2] =
    [one(1, "offset", "offset", Kind::Sint32), many(2, "bucket_counts", "bucketCounts", Kind::Uint64)];

static SUMMARY_POINT: Message = Message::unit(&SUMMARY_POINT_FIELDS, Unit::Point);
static SUMMARY_POINT_FIELDS: [Field; 7] = [
    one(2, "start_time_unix_nano", "startTimeUnixNano", Kind::Fixed64),
    one(3, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(4, "count", "count", Kind::Fixed64),
    one(5, "sum", "sum", Kind::Double),
    many(6, "quantile_values", "quantileValues", Kind::Message(&QUANTILE)),
    many(7, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(8, "flags", "flags", Kind::Uint32),
];

static QUANTILE: Message = Message::new(&QUANTILE_FIELDS);
static QUANTILE_FIELDS: [Field; 2] =
    [one(1, "quantile", "quantile", Kind::Double), one(2, "value", "value", Kind::Double)];

static EXEMPLAR: Message = Message::new(&EXEMPLAR_FIELDS);
static EXEMPLAR_FIELDS: [Field; 6] = [
    one(2, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(3, "as_double", "asDouble", Kind::Double),
    one(4, "span_id", "spanId", Kind::Id(SPAN_ID_OR_NONE)),
    one(5, "trace_id", "traceId", Kind::Id(TRACE_ID_OR_NONE)),
    one(6, "as_int", "asInt", Kind::Sfixed64),
    many(7, "filtered_attributes", "filteredAttributes", Kind::Message(&ATTRIBUTE)),
];
