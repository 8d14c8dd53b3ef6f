//! The tools on offer, in the shapes in which they are written down: MCP's `tools/list`, and what chat APIs are sent.

use serde_json::{Map, Value};

/// How many tools are looked at.
pub const TOOLS_MAX: usize = 200;

/// One tool on offer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is said to do; empty when nothing is said.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub schema: Option<&'a Value>,
}

impl<'a> Offer<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let outer = value.as_object()?;
        // `{"type": "function", "function": {...}}`.
        let fields = outer.get("function").and_then(Value::as_object).unwrap_or(outer);
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let schema =
            ["inputSchema", "input_schema", "parameters", "args_schema"].iter().find_map(|key| fields.get(*key));
        Some(Self {
            name: text("name").or_else(|| text("tool_name"))?,
            description: text("description").unwrap_or_default(),
            schema: schema.filter(|schema| !schema.is_null()),
        })
    }

    /// The names of its arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &'a str> {
        let properties = self.schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        properties.into_iter().flat_map(Map::keys).map(String::as_str)
    }
}

/// The tools of a catalogue: a list, `{"tools": [...]}`, or an object with a tool under each name.
pub(super) fn offers(catalogue: &Value) -> Vec<Offer<'_>> {
    let list = match catalogue {
        Value::Array(list) => list,
        Value::Object(fields) => match fields.get("tools") {
            Some(Value::Array(list)) => list,
            _ => return named(fields),
        },
        _ => return Vec::new(),
    };
    list.iter().take(TOOLS_MAX).filter_map(Offer::read).collect()
}

fn named(fields: &Map<String, Value>) -> Vec<Offer<'_>> {
    let offers = fields.iter().take(TOOLS_MAX).filter(|(_, value)| value.is_object());
    offers
        .map(|(name, value)| Offer {
            name,
            ..Offer::read(value).unwrap_or(Offer { name, description: "", schema: None })
        })
        .collect()
}
