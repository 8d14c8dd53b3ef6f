//! Whether a parsed statement is harmless: everything in its tree must stand in a list here.
//!
//! Functions whose result may be longer than what they are given are left out: what is written in eight kilobytes could
//! otherwise fill the memory. So are those that reach files, settings, sequences, other statements or the clock of a sleep,
//! and those whose work on one value is more than linear.

use serde_json::{Map, Value};

use super::views::VIEWS;

/// Objects of one tree.
const NODES_MAX: usize = 20_000;

/// Queries, tables and their modifiers.
const PARTS: &[&str] = &[
    "SELECT_NODE",
    "SET_OPERATION_NODE",
    "BASE_TABLE",
    "SUBQUERY",
    "JOIN",
    "EXPRESSION_LIST",
    "EMPTY",
    "ORDER_MODIFIER",
    "LIMIT_MODIFIER",
    "DISTINCT_MODIFIER",
    "ORDER_DEFAULT",
    "ASCENDING",
    "DESCENDING",
];

/// Expressions that need no look of their own.
const CLASSES: &[&str] =
    &["COLUMN_REF", "POSITIONAL_REFERENCE", "CONSTANT", "COMPARISON", "CONJUNCTION", "CASE", "BETWEEN", "SUBQUERY"];

const OPERATORS: &[&str] = &[
    "OPERATOR_NOT",
    "OPERATOR_IS_NULL",
    "OPERATOR_IS_NOT_NULL",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
    "OPERATOR_COALESCE",
    "OPERATOR_NULLIF",
    "GROUPING_FUNCTION",
];

/// Types that a value may be cast to.
const TYPES: &[&str] = &[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "VARCHAR",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "INTERVAL",
    "NULL",
];

/// Functions and operators, as the engine's parser names them.
pub const FUNCTIONS: &[&str] = &[
    // Over many rows.
    "count",
    "count_star",
    "count_if",
    "countif",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "median",
    "mode",
    "quantile_cont",
    "quantile_disc",
    "approx_quantile",
    "approx_count_distinct",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "corr",
    "mad",
    "any_value",
    "first",
    "last",
    "arg_max",
    "arg_min",
    "max_by",
    "min_by",
    "bool_and",
    "bool_or",
    // Over a window.
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
    // Texts.
    "lower",
    "upper",
    "lcase",
    "ucase",
    "length",
    "strlen",
    "len",
    "char_length",
    "character_length",
    "trim",
    "ltrim",
    "rtrim",
    "left",
    "right",
    "substr",
    "substring",
    "contains",
    "starts_with",
    "ends_with",
    "prefix",
    "suffix",
    "instr",
    "strpos",
    "position",
    "strip_accents",
    "reverse",
    "split_part",
    "regexp_matches",
    "regexp_full_match",
    "regexp_extract",
    "~~",
    "!~~",
    "~~*",
    "!~~*",
    "like_escape",
    "not_like_escape",
    "ilike_escape",
    "not_ilike_escape",
    "^@",
    // JSON texts.
    "->",
    "->>",
    "json_extract",
    "json_extract_string",
    "json_extract_path",
    "json_extract_path_text",
    "json_type",
    "json_valid",
    "json_array_length",
    "json_exists",
    "json_value",
    "json_contains",
    // Numbers.
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "^",
    "abs",
    "ceil",
    "ceiling",
    "floor",
    "round",
    "trunc",
    "sqrt",
    "ln",
    "log",
    "log2",
    "log10",
    "exp",
    "pow",
    "power",
    "sign",
    "greatest",
    "least",
    "mod",
    "isnan",
    "isfinite",
    "row",
    "nullif",
    // Times.
    "date_trunc",
    "datetrunc",
    "date_part",
    "datepart",
    "date_diff",
    "datediff",
    "date_sub",
    "datesub",
    "year",
    "quarter",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "dayofweek",
    "isodow",
    "week",
    "dayname",
    "monthname",
    "epoch",
    "epoch_ms",
    "epoch_us",
    "to_timestamp",
    "make_date",
    "make_timestamp",
    "time_bucket",
    "age",
    "now",
    "current_date",
    "today",
    "get_current_timestamp",
    "current_timestamp",
    "to_days",
    "to_hours",
    "to_minutes",
    "to_seconds",
    "to_milliseconds",
    "to_weeks",
    "to_months",
];

/// What a walk knows.
struct Walk {
    /// Names that a query around or before has given to its parts, in lower case.
    named: Vec<String>,
    nodes: usize,
}

/// Refuses a tree with anything that stands in no list; the reason is in words of the caller or of this program.
pub(super) fn check(tree: &Value) -> Result<(), String> {
    if tree["error"] != Value::Bool(false) {
        let why = tree["error_message"].as_str().unwrap_or("it cannot be read");
        return Err(why.chars().filter(|letter| !letter.is_control()).take(200).collect());
    }
    let [statement] = tree["statements"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err("more or fewer than one statement".to_owned());
    };
    if statement["named_param_map"].as_array().is_some_and(|params| !params.is_empty()) {
        return Err("a parameter".to_owned());
    }
    Walk { named: Vec::new(), nodes: 0 }.value(&statement["node"])
}

impl Walk {
    fn value(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item)),
            Value::Object(fields) => self.object(fields),
            _ => Ok(()),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err("more parts than one statement may have".to_owned());
        }
        match (fields.get("class"), fields.get("type")) {
            (Some(class), _) => expression(text(Some(class)), fields)?,
            (None, Some(Value::String(part))) => self.part(part, fields)?,
            _ => {}
        }
        let before = self.named.len();
        // In order: a part sees those before it, and not itself.
        let parts = fields.get("cte_map").and_then(|map| map.get("map")).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.value(&part["value"])?;
            self.named.push(text(part.get("key")).to_lowercase());
        }
        for (name, inner) in fields {
            match name.as_str() {
                "cte_map" => {}
                "cast_type" => cast(inner)?,
                "value" if fields.get("class").is_some_and(|class| class == "CONSTANT") => constant(inner)?,
                _ => self.value(inner)?,
            }
        }
        self.named.truncate(before);
        Ok(())
    }

    fn part(&self, part: &str, fields: &Map<String, Value>) -> Result<(), String> {
        if !PARTS.contains(&part) {
            return Err(format!("{} is not taken", part.to_lowercase()));
        }
        if part != "BASE_TABLE" {
            return Ok(());
        }
        let name = text(fields.get("table_name")).to_lowercase();
        let is_plain = text(fields.get("schema_name")).is_empty()
            && text(fields.get("catalog_name")).is_empty()
            && fields.get("at_clause").is_none_or(Value::is_null);
        let is_known = VIEWS.iter().any(|view| view.name == name) || self.named.contains(&name);
        if is_plain && is_known {
            return Ok(());
        }
        let valid: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        Err(format!("a table that is not there; valid: {}", valid.join(", ")))
    }
}

fn expression(class: &str, fields: &Map<String, Value>) -> Result<(), String> {
    match class {
        "FUNCTION" | "WINDOW" => function(fields),
        "OPERATOR" => {
            let operator = text(fields.get("type"));
            listed(OPERATORS, operator).then_some(()).ok_or_else(|| format!("{} is not taken", operator.to_lowercase()))
        }
        // Its type stands under cast_type.
        "CAST" => Ok(()),
        "STAR" if fields.get("expr").is_none_or(Value::is_null) => Ok(()),
        other if CLASSES.contains(&other) => Ok(()),
        other => Err(format!("{} is not taken", other.to_lowercase())),
    }
}

fn function(fields: &Map<String, Value>) -> Result<(), String> {
    let name = text(fields.get("function_name"));
    let is_plain = matches!(text(fields.get("schema")), "" | "main")
        && text(fields.get("catalog")).is_empty()
        && fields.get("export_state").is_none_or(|state| state == &Value::Bool(false));
    if is_plain && listed(FUNCTIONS, &name.to_lowercase()) {
        return Ok(());
    }
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
    Err(format!("the function {name} is not taken; describe lists those that are"))
}

fn cast(kind: &Value) -> Result<(), String> {
    let id = text(kind.get("id"));
    let info = kind.get("type_info").filter(|info| !info.is_null());
    let is_plain =
        info.is_none() || (id == "DECIMAL" && text(info.and_then(|info| info.get("type"))) == "DECIMAL_TYPE_INFO");
    (is_plain && listed(TYPES, id)).then_some(()).ok_or_else(|| "a cast to a type that is not taken".to_owned())
}

fn constant(value: &Value) -> Result<(), String> {
    cast(value.get("type").unwrap_or(&Value::Null))
}

fn listed(list: &[&str], name: &str) -> bool {
    list.contains(&name)
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}
