use super::*;

fn schema(schema: Value, output: &str) -> Outcome {
    let mut config = json!({});
    config["schema"] = schema;
    said("json_schema", config, output)
}

#[test]
fn a_schema_is_held_against_the_whole_output() {
    let order = json!({
        "type": "object", "required": ["id", "lines"], "additionalProperties": false,
        "properties": {
            "id": {"type": "string", "pattern": "^A-\\d+$"},
            "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
        },
        "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}},
    });
    let good = r#"{"id": "A-17", "lines": [{"sku": "x"}]}"#;
    assert_eq!(word(&schema(order.clone(), good)), "pass");
    for (bad, words) in [
        (r#"{"id": "17", "lines": [{"sku": "x"}]}"#, "at /id: pattern"),
        (r#"{"id": "A-1", "lines": []}"#, "at /lines: minItems"),
        (r#"{"id": "A-1", "lines": [{}]}"#, "at /lines/0: required"),
        (r#"{"id": "A-1", "lines": [{"sku": "x"}], "secret-name": 1}"#, "as a whole: additionalProperties"),
        ("Here is your JSON: {}", "line 1 column 1"),
        ("", "is not JSON"),
    ] {
        let outcome = schema(order.clone(), bad);
        assert_eq!(word(&outcome), "fail", "{bad}");
        assert!(finding(&outcome).message.contains(words), "{bad}: {}", finding(&outcome).message);
        assert!(!finding(&outcome).message.contains("secret-name"));
    }
    assert_eq!(word(&said("json_schema", json!({}), "\u{feff}[1]")), "pass", "a byte order mark");
    assert_eq!(word(&schema(json!(false), "1")), "fail");
}

#[test]
fn counting_and_dependent_keywords_are_checked() {
    let contains = json!({"contains": {"type": "string"}, "minContains": 2, "maxContains": 3});
    for (output, expected) in
        [("[1, \"a\"]", "fail"), ("[\"a\", \"b\"]", "pass"), ("[\"a\",\"b\",\"c\",\"d\"]", "fail")]
    {
        assert_eq!(word(&schema(contains.clone(), output)), expected, "{output}");
    }
    assert_eq!(word(&schema(json!({"contains": {"type": "string"}, "minContains": 0}), "[1]")), "pass");
    let dependent = json!({"dependentSchemas": {"card": {"required": ["address"]}}});
    assert_eq!(word(&schema(dependent.clone(), r#"{"card": 1}"#)), "fail");
    assert_eq!(word(&schema(dependent, r#"{"cash": 1}"#)), "pass");
}

#[test]
fn a_schema_that_could_not_be_checked_is_refused_at_deploy() {
    let deep = (0..40).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    let wide = Value::Object((0..2100).map(|n| (n.to_string(), json!({}))).collect());
    let ways = Value::Object(
        (0..22)
            .map(|n| {
                let next = format!("#/$defs/d{}", n + 1);
                (format!("d{n}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}))
            })
            .chain([("d22".to_owned(), json!({}))])
            .collect(),
    );
    for (given, words) in [
        (json!("object"), "an object, true or false"),
        (json!({"type": "strnig"}), "one or several of object, array"),
        (json!({"type": []}), "one or several of"),
        (json!({"$ref": "https://example.com/order.json"}), "nothing is fetched"),
        (json!({"$ref": "file:///etc/passwd"}), "nothing is fetched"),
        (json!({"$ref": "#/$defs/none"}), "names no place"),
        (json!({"$ref": "#"}), "leads back to itself"),
        (
            json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}),
            "leads back",
        ),
        (json!({"$ref": "#/$defs/d0", "$defs": ways}), "more ways than can be followed"),
        (json!({"$dynamicRef": "#x"}), "$dynamicRef is not checked here"),
        (json!({"properties": {"a": {"unevaluatedProperties": false}}}), "unevaluatedProperties is not checked here"),
        (json!({"pattern": "(?=a)b"}), "look-around"),
        (json!({"patternProperties": {"(": {}}}), "unclosed group"),
        (json!({"minLength": "3"}), "minLength must be a number"),
        (json!({"multipleOf": 0}), "above 0"),
        (json!({"required": "id"}), "required must be a list of names"),
        (json!({"enum": {}}), "enum must be a list"),
        (json!({"anyOf": {}}), "anyOf must be a list of schemas"),
        (json!({"properties": []}), "properties must be an object"),
        (json!({"items": 3}), "must be an object, true or false"),
        (deep, "nested deeper than"),
        (json!({"properties": wide}), "more than 2000 schemas"),
        (json!({"description": "x".repeat(70_000)}), "at most 65536"),
        (
            json!({"allOf": (0..25).map(|n| json!({"pattern": format!("a{n}")})).collect::<Vec<_>>()}),
            "more than 24 patterns",
        ),
    ] {
        let problem = compiled("json_schema", json!({"schema": given})).unwrap_err();
        assert_eq!(problem.field, "config.schema", "{problem}");
        assert!(problem.why.contains(words), "{words}: {problem}");
    }
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}});
    assert!(compiled("json_schema", json!({"schema": tree})).is_ok(), "a step into the value lies between");
}

#[test]
fn a_hostile_output_defeats_the_rule_and_never_passes() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(word(&schema(json!({"items": {}}), &deep)), "fail", "deeper than JSON is read here");
    let nested = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let node = json!({"$ref": "#/$defs/n", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}});
    assert_eq!(word(&schema(node, &nested)), "defeated");
    let many = format!("[{}1]", "1,".repeat(300_000));
    assert_eq!(word(&schema(json!({"items": {"type": "integer"}}), &many)), "defeated");
    assert_eq!(word(&schema(json!({"uniqueItems": true}), &many)), "defeated");
    assert_eq!(word(&schema(json!({"type": "array"}), &many)), "pass");
    let list = format!("[{}\"a\"]", "\"a\",".repeat(2000));
    assert_eq!(word(&schema(json!({"items": {"pattern": "^a$"}}), &list)), "pass", "a pattern is compiled once");
}
