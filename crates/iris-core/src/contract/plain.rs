//! What a parser says is expected, in words of whoever writes settings and arguments: names of types are the program's own.

/// What is expected, as the parser says it: `u64`, `struct Args`, `a string`.
pub fn expected(words: &str) -> String {
    let words = words.trim();
    if let Some(names) = words.strip_prefix("one of ") {
        return format!("one of {names}");
    }
    let bits = |name: &str| name.get(1..).is_some_and(|bits| matches!(bits, "8" | "16" | "32" | "64" | "128" | "size"));
    let plain = match words {
        "u8" => "a whole number from 0 to 255",
        "i8" => "a whole number from -128 to 127",
        "f32" | "f64" | "float" | "floating point number" => "a number",
        name if name.starts_with('u') && bits(name) => "a whole number, 0 or more",
        name if name.starts_with('i') && bits(name) || name == "integer" => "a whole number",
        name if name.starts_with("a nonzero u") || name.starts_with("nonzero u") => "a whole number, 1 or more",
        "bool" | "boolean" | "a boolean" | "a bool" => "true or false",
        "str" | "string" | "a string" | "a borrowed string" | "a character" | "char" => "text",
        "path string" | "a path string" => "a path",
        "unit" | "null" | "option" | "unit value" => "nothing",
        "map" | "a map" | "identifier" | "field identifier" => "an object",
        "sequence" | "a sequence" | "seq" | "a list" => "a list",
        "variant identifier" | "a variant identifier" => "one of the names that are valid here",
        name if name.starts_with("struct ") || name.starts_with("a map ") => "an object",
        name if name.starts_with("enum ") || name.contains("tagged enum") => "one of the forms that are valid here",
        name if name.starts_with("tuple") || name.starts_with("a tuple") || name.starts_with("an array of") => "a list",
        other => other,
    };
    plain.to_owned()
}

/// What was found, as the parser says it: ``integer `-1` ``, `string "x"`. What a text says is not repeated.
fn found(words: &str) -> String {
    let (kind, value) = words.split_once(' ').unwrap_or((words, ""));
    let value = value.trim_matches('`');
    match kind {
        "string" | "character" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" | "floating" => {
            let number = value.strip_prefix("point ").unwrap_or(value).trim_matches('`');
            if number.parse::<f64>().is_ok() { format!("the number {number}") } else { "a number".to_owned() }
        }
        "null" | "unit" | "Option" => "nothing (null)".to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "an object".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// The reason why a value is not taken, without the value where that is text: a parser quotes it.
pub fn reason(message: &str) -> String {
    for (start, joint) in
        [("invalid type: ", "where"), ("invalid value: ", "is not valid here; expected"), ("invalid length ", "")]
    {
        let Some(rest) = message.strip_prefix(start) else { continue };
        // What was found may hold the same words.
        let Some((was, wanted)) = rest.rsplit_once(", expected ") else {
            return "of another form than is expected".to_owned();
        };
        return match joint {
            "" => "a list of another length than is expected".to_owned(),
            "where" => format!("{} where {} is expected", found(was), expected(wanted)),
            joint => format!("{} {joint} {}", found(was), expected(wanted)),
        };
    }
    if let Some((_, valid)) = message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, ")) {
        return format!("not a valid value; {valid}");
    }
    if message.starts_with("data did not match any variant") {
        return "of none of the forms that are valid here".to_owned();
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("`{name}` is missing");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: what the parser says of values of every wrong kind, some of which quote what may be a secret.
    /// Guarantees: no name of a type of this program, and no text of the caller, is in what is told.
    #[test]
    fn no_name_of_a_type_is_told() {
        for (said, told) in [
            (
                "invalid type: string \"sk-1, expected u8\", expected u64",
                "text where a whole number, 0 or more is expected",
            ),
            ("invalid type: integer `5`, expected a string", "the number 5 where text is expected"),
            ("invalid type: boolean `true`, expected f64", "true or false where a number is expected"),
            (
                "invalid type: floating point `1.5`, expected usize",
                "the number 1.5 where a whole number, 0 or more is expected",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "the number -1 is not valid here; expected a whole number, 0 or more",
            ),
            (
                "invalid value: integer `300`, expected u8",
                "the number 300 is not valid here; expected a whole number from 0 to 255",
            ),
            ("invalid type: null, expected a string", "nothing (null) where text is expected"),
            ("invalid type: sequence, expected struct ToolCall", "a list where an object is expected"),
            ("invalid type: map, expected a sequence", "an object where a list is expected"),
            ("invalid length 3, expected a tuple of size 2", "a list of another length than is expected"),
            ("invalid value: string \"secret\", expected a path", "text is not valid here; expected a path"),
            (
                "unknown variant `secret`, expected one of `low`, `high`",
                "not a valid value; expected one of `low`, `high`",
            ),
            ("data did not match any variant of untagged enum Limit", "of none of the forms that are valid here"),
            ("missing field `output`", "`output` is missing"),
        ] {
            assert_eq!(reason(said), told);
            assert!(!told.contains("secret") && !told.contains("sk-1"));
        }
        for of_ours in
            ["u16", "u32", "u64", "u128", "usize", "i32", "isize", "f32", "bool", "struct Config", "enum Kind"]
        {
            assert!(
                !expected(of_ours).split(' ').any(|word| of_ours.ends_with(word)),
                "{of_ours}: {}",
                expected(of_ours)
            );
        }
    }
}
