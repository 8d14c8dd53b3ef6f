//! `logs_service.proto` and `logs.proto`.

use super::common::{ATTRIBUTE, RESOURCE, SCOPE, VALUE};
use super::{Field, Kind, Message, RECORD_TRACE_ID, SPAN_ID_OR_NONE, Unit, many, one};

pub(super) static REQUEST: Message = Message::new(&REQUEST_FIELDS);
static REQUEST_FIELDS: [Field; 1] = [many(1, "resource_logs", "resourceLogs", Kind::Message(&RESOURCE_LOGS))];

static RESOURCE_LOGS: Message = Message::unit(&RESOURCE_LOGS_FIELDS, Unit::Resource);
static RESOURCE_LOGS_FIELDS: [Field; 3] = [
    one(1, "resource", "resource", Kind::Message(&RESOURCE)),
    many(2, "scope_logs", "scopeLogs", Kind::Message(&SCOPE_LOGS)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static SCOPE_LOGS: Message = Message::unit(&SCOPE_LOGS_FIELDS, Unit::Scope);
static SCOPE_LOGS_FIELDS: [Field; 3] = [
    one(1, "scope", "scope", Kind::Message(&SCOPE)),
    many(2, "log_records", "logRecords", Kind::Message(&RECORD)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static RECORD: Message = Message::unit(&RECORD_FIELDS, Unit::Record);
static RECORD_FIELDS: [Field; 11] = [
    one(1, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(2, "severity_number", "severityNumber", Kind::Enum(&SEVERITY)),
    one(3, "severity_text", "severityText", Kind::Text),
    one(5, "body", "body", Kind::Message(&VALUE)),
    many(6, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(7, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
    one(8, "flags", "flags", Kind::Fixed32),
    one(9, "trace_id", "traceId", Kind::Id(RECORD_TRACE_ID)),
    one(10, "span_id", "spanId", Kind::Id(SPAN_ID_OR_NONE)),
    one(11, "observed_time_unix_nano", "observedTimeUnixNano", Kind::Fixed64),
    one(12, "event_name", "eventName", Kind::Text),
];

static SEVERITY: [(&str, i32); 25] = [
    ("SEVERITY_NUMBER_UNSPECIFIED", 0),
    ("SEVERITY_NUMBER_TRACE", 1),
    ("SEVERITY_NUMBER_TRACE2", 2),
    ("SEVERITY_NUMBER_TRACE3", 3),
    ("SEVERITY_NUMBER_TRACE4", 4),
    ("SEVERITY_NUMBER_DEBUG", 5),
    ("SEVERITY_NUMBER_DEBUG2", 6),
    ("SEVERITY_NUMBER_DEBUG3", 7),
    ("SEVERITY_NUMBER_DEBUG4", 8),
    ("SEVERITY_NUMBER_INFO", 9),
    ("SEVERITY_NUMBER_INFO2", 10),
    ("SEVERITY_NUMBER_INFO3", 11),
    ("SEVERITY_NUMBER_INFO4", 12),
    ("SEVERITY_NUMBER_WARN", 13),
    ("SEVERITY_NUMBER_WARN2", 14),
    ("SEVERITY_NUMBER_WARN3", 15),
    ("SEVERITY_NUMBER_WARN4", 16),
    ("SEVERITY_NUMBER_ERROR", 17),
    ("SEVERITY_NUMBER_ERROR2", 18),
    ("SEVERITY_NUMBER_ERROR3", 19),
    ("SEVERITY_NUMBER_ERROR4", 20),
    ("SEVERITY_NUMBER_FATAL", 21),
    ("SEVERITY_NUMBER_FATAL2", 22),
    ("SEVERITY_NUMBER_FATAL3", 23),
    ("SEVERITY_NUMBER_FATAL4", 24),
];
