//! `common.proto` and `resource.proto`: values, attributes, scopes, resources.

use super::{Field, Kind, Message, many, one};

pub(super) static VALUE: Message = {
    let mut message = Message::new(&VALUE_FIELDS);
    message.is_value = true;
    message
};

static VALUE_FIELDS: [Field; 8] = [
    one(1, "string_value", "stringValue", Kind::Text),
    one(2, "bool_value", "boolValue", Kind::Bool),
    one(3, "int_value", "intValue", Kind::Int64),
    one(4, "double_value", "doubleValue", Kind::Double),
    one(5, "array_value", "arrayValue", Kind::Message(&ARRAY)),
    one(6, "kvlist_value", "kvlistValue", Kind::Message(&MAP)),
    one(7, "bytes_value", "bytesValue", Kind::Bytes),
    one(8, "string_value_strindex", "stringValueStrindex", Kind::Int32),
];

static ARRAY: Message = Message::new(&ARRAY_FIELDS);
static ARRAY_FIELDS: [Field; 1] = [many(1, "values", "values", Kind::Message(&VALUE))];

static MAP: Message = Message::new(&MAP_FIELDS);
static MAP_FIELDS: [Field; 1] = [many(1, "values", "values", Kind::Message(&ATTRIBUTE))];

pub(super) static ATTRIBUTE: Message = Message::new(&ATTRIBUTE_FIELDS);
static ATTRIBUTE_FIELDS: [Field; 3] = [
    one(1, "key", "key", Kind::Text),
    one(2, "value", "value", Kind::Message(&VALUE)),
    one(3, "key_strindex", "keyStrindex", Kind::Int32),
];

pub(super) static SCOPE: Message = Message::new(&SCOPE_FIELDS);
static SCOPE_FIELDS: [Field; 4] = [
    one(1, "name", "name", Kind::Text),
    one(2, "version", "version", Kind::Text),
    many(3, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(4, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
];

pub(super) static RESOURCE: Message = Message::new(&RESOURCE_FIELDS);
static RESOURCE_FIELDS: [Field; 3] = [
    many(1, "attributes", "attributes", Kind::Message(&ATTRIBUTE)),
    one(2, "dropped_attributes_count", "droppedAttributesCount", Kind::Uint32),
    many(3, "entity_refs", "entityRefs", Kind::Message(&ENTITY)),
];

static ENTITY: Message = Message::new(&ENTITY_FIELDS);
static ENTITY_FIELDS: [Field; 4] = [
    one(1, "schema_url", "schemaUrl", Kind::Text),
    one(2, "type", "type", Kind::Text),
    many(3, "id_keys", "idKeys", Kind::Text),
    many(4, "description_keys", "descriptionKeys", Kind::Text),
];
