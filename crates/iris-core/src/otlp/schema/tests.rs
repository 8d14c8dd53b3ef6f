use std::collections::BTreeSet;

use prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind as ProtoKind, MessageDescriptor, Value,
};

use super::*;

fn proto(path: &str) -> String {
    format!("{}/../../proto/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn pool() -> DescriptorPool {
    let files = ["trace", "logs", "metrics"]
        .map(|signal| format!("opentelemetry/proto/collector/{signal}/v1/{signal}_service.proto"));
    let set = protox::compile(files, [proto("")]).unwrap();
    DescriptorPool::from_file_descriptor_set(set).unwrap()
}

fn request_descriptor(pool: &DescriptorPool, lane: Lane) -> MessageDescriptor {
    let (package, name) = match lane {
        Lane::Traces => ("trace", "ExportTraceServiceRequest"),
        Lane::Logs => ("logs", "ExportLogsServiceRequest"),
        Lane::Metrics => ("metrics", "ExportMetricsServiceRequest"),
    };
    pool.get_message_by_name(&format!("opentelemetry.proto.collector.{package}.v1.{name}")).unwrap()
}

/// Compares a table with its message, and all tables below it.
fn compare(table: &'static Message, message: &MessageDescriptor, seen: &mut BTreeSet<String>) {
    if !seen.insert(message.full_name().to_owned()) {
        return;
    }
    let numbers: Vec<u32> = table.fields.iter().map(|field| u32::from(field.number)).collect();
    let expected: BTreeSet<u32> = message.fields().map(|field| field.number()).collect();
    assert_eq!(numbers.iter().copied().collect::<BTreeSet<_>>(), expected, "{}", message.full_name());
    assert_eq!(numbers.len(), expected.len(), "{}", message.full_name());
    for field in table.fields {
        let proto = message.get_field(u32::from(field.number)).unwrap();
        let what = proto.full_name();
        assert_eq!(field.name, proto.name(), "{what}");
        assert_eq!(field.json, proto.json_name(), "{what}");
        assert_eq!(field.is_list, proto.is_list(), "{what}");
        assert!(std::ptr::eq(table.field(proto.number()).unwrap(), field), "{what}");
        compare_kind(field, &proto, seen);
    }
}

fn compare_kind(field: &'static Field, proto: &FieldDescriptor, seen: &mut BTreeSet<String>) {
    let is_right = match (field.kind, proto.kind()) {
        (Kind::Message(inner), ProtoKind::Message(message)) => {
            compare(inner, &message, seen);
            true
        }
        (Kind::Enum(names), ProtoKind::Enum(proto)) => {
            let expected: Vec<_> = proto.values().map(|value| (value.name().to_owned(), value.number())).collect();
            names.iter().map(|(name, number)| ((*name).to_owned(), *number)).eq(expected)
        }
        (Kind::Bool, ProtoKind::Bool)
        | (Kind::Int32, ProtoKind::Int32)
        | (Kind::Int64, ProtoKind::Int64)
        | (Kind::Uint32, ProtoKind::Uint32)
        | (Kind::Uint64, ProtoKind::Uint64)
        | (Kind::Sint32, ProtoKind::Sint32)
        | (Kind::Fixed32, ProtoKind::Fixed32)
        | (Kind::Fixed64, ProtoKind::Fixed64)
        | (Kind::Sfixed64, ProtoKind::Sfixed64)
        | (Kind::Double, ProtoKind::Double)
        | (Kind::Text, ProtoKind::String)
        | (Kind::Bytes | Kind::Id(_), ProtoKind::Bytes) => true,
        _ => false,
    };
    assert!(is_right, "{} is of another kind", proto.full_name());
}

#[test]
fn the_tables_say_what_the_proto_files_say() {
    let pool = pool();
    let mut seen = BTreeSet::new();
    for lane in Lane::ALL {
        compare(request(lane), &request_descriptor(&pool, lane), &mut seen);
    }
    assert!(seen.len() > 25, "only {} messages were compared", seen.len());
}

/// A message with every field set, two elements in every list.
fn full(message: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut out = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let value = match field.kind() {
            ProtoKind::Message(_) if depth == 0 => continue,
            ProtoKind::Message(inner) => Value::Message(full(&inner, depth - 1)),
            ProtoKind::Enum(_) => Value::EnumNumber(1),
            ProtoKind::Bool => Value::Bool(true),
            ProtoKind::Int32 | ProtoKind::Sint32 => Value::I32(-7),
            ProtoKind::Int64 | ProtoKind::Sfixed64 => Value::I64(-9),
            ProtoKind::Uint32 | ProtoKind::Fixed32 => Value::U32(11),
            ProtoKind::Uint64 | ProtoKind::Fixed64 => Value::U64(13),
            ProtoKind::Double => Value::F64(0.5),
            ProtoKind::String => Value::String(field.name().to_owned()),
            ProtoKind::Bytes => Value::Bytes(vec![field.number() as u8; 8].into()),
            other => panic!("{} is {other:?}", field.full_name()),
        };
        let value = if field.is_list() { Value::List(vec![value.clone(), value]) } else { value };
        out.set_field(&field, value);
    }
    out
}

/// What goes through the crate's messages and comes back unchanged was read field by field as the files say: a
/// field that the crate did not know, or knew by another number or form, would be lost.
#[test]
fn the_crate_s_messages_carry_every_field_of_the_proto_files() {
    use opentelemetry_proto::tonic::collector::{logs, metrics, trace};
    let pool = pool();
    for lane in Lane::ALL {
        let descriptor = request_descriptor(&pool, lane);
        let sent = full(&descriptor, 11);
        let bytes = sent.encode_to_vec();
        let back = match lane {
            Lane::Traces => trace::v1::ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap().encode_to_vec(),
            Lane::Logs => logs::v1::ExportLogsServiceRequest::decode(bytes.as_slice()).unwrap().encode_to_vec(),
            Lane::Metrics => {
                metrics::v1::ExportMetricsServiceRequest::decode(bytes.as_slice()).unwrap().encode_to_vec()
            }
        };
        assert_eq!(DynamicMessage::decode(descriptor, back.as_slice()).unwrap(), sent, "{lane:?}");
    }
}
