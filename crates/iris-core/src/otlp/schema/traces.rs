//! `trace_service.proto` and `trace.proto`.

use super::common::{ATTRIBUTE, RESOURCE, SCOPE};
use super::{Field, Kind, Message, SPAN_ID, SPAN_ID_OR_NONE, TRACE_ID, TRACE_ID_OR_NONE, Unit, many, one};

pub(super) static REQUEST: Message = Message::new(&REQUEST_FIELDS);
static REQUEST_FIELDS: [Field; 1] = [many(1, "resource_spans", "resourceSpans", Kind::Message(&RESOURCE_SPANS))];

static RESOURCE_SPANS: Message = Message::unit(&RESOURCE_SPANS_FIELDS, Unit::Resource);
static RESOURCE_SPANS_FIELDS: [Field; 3] = [
    one(1, "resource", "resource", Kind::Message(&RESOURCE)),
    many(2, "scope_spans", "scopeSpans", Kind::Message(&SCOPE_SPANS)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static SCOPE_SPANS: Message = Message::unit(&SCOPE_SPANS_FIELDS, Unit::Scope);
static SCOPE_SPANS_FIELDS: [Field; 3] = [
    one(1, "scope", "scope", Kind::Message(&SCOPE)),
    many(2, "spans", "spans", Kind::Message(&SPAN)),
    one(3, "schema_url", "schemaUrl", Kind::Text),
];

static SPAN: Message = Message::unit(&SPAN_FIELDS, Unit::Span);
static SPAN_FIELDS: [Field; 16] = [
    one(1, "trace_id", "traceId", Kind::Id(TRACE_ID)),
    one(2, "span_id", "spanId", Kind::Id(SPAN_ID)),
    one(3, "trace_state", "traceState", Kind::Text),
    one(4, "parent_span_id", "parentSpanId", Kind::Id(SPAN_ID_OR_NONE)),
    one(5, "name", "name", Kind::Text),
    one(6, "kind", "kind", Kind::Enum(&SPAN_KIND)),
    one(7, "start_time_unix_nano", "startTimeUnixNano", Kind::Fixed64),
    one(8, "end_time_unix_nano", "endTimeUnixNano", Kind::Fixed64),
    many(9, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(10, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
    many(11, "events", "events", Kind::Message(&EVENT)),
    one(12, "dropped_events_count", "droppedEventsCount", Kind::Uint32),
    many(13, "links", "links", Kind::Message(&LINK)),
    one(14, "dropped_links_count", "droppedLinksCount", Kind::Uint32),
    one(15, "status", "status", Kind::Message(&STATUS)),
    one(16, "flags", "flags", Kind::Fixed32),
];

static SPAN_KIND: [(&str, i32); 6] = [
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
];

static EVENT: Message = Message::new(&EVENT_FIELDS);
static EVENT_FIELDS: [Field; 4] = [
    one(1, "time_unix_nano", "timeUnixNano", Kind::Fixed64),
    one(2, "name", "name", Kind::Text),
    many(3, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(4, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
];

// The specification lets an SDK record a link to a context without ids, as long as it says something else:
// <https://opentelemetry.io/docs/specs/otel/trace/api/#link>.
static LINK: Message = Message::new(&LINK_FIELDS);
static LINK_FIELDS: [Field; 6] = [
    one(1, "trace_id", "traceId", Kind::Id(TRACE_ID_OR_NONE)),
    one(2, "span_id", "spanId", Kind::Id(SPAN_ID_OR_NONE)),
    one(3, "trace_state", "traceState", Kind::Text),
    many(4, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(5, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
    one(6, "flags", "flags", Kind::Fixed32),
];

static STATUS: Message = Message::new(&STATUS_FIELDS);
static STATUS_FIELDS: [Field; 2] =
    [one(2, "message", "message", Kind::Text), one(3, "code", "code", Kind::Enum(&STATUS_CODE))];

static STATUS_CODE: [(&str, i32); 3] = [("STATUS_CODE_UNSET", 0), ("STATUS_CODE_OK", 1), ("STATUS_CODE_ERROR", 2)];
