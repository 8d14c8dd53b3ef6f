use secrecy::ExposeSecret as _;

use super::*;

fn load(file: &str, env: &[(&str, &str)]) -> Result<Loaded, Problems> {
    Config::load(&Sources {
        file: (!file.is_empty()).then(|| ("iris.yaml".to_owned(), file.to_owned())),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        flags: Vec::new(),
    })
}

#[test]
fn later_sources_win() {
    let file = "assembly:\n  quiet_ms: 1500\n  idle_ms: 9000\n";
    let loaded = load(file, &[("IRIS__ASSEMBLY__IDLE_MS", "10000")]).unwrap();
    assert_eq!(loaded.config.assembly.quiet_ms, 1500);
    assert_eq!(loaded.config.assembly.idle_ms, 10000);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_and_all_at_once() {
    let problems = load("assembly:\n  quiet_msec: 1\njurnal: {}\n", &[("IRIS__STORE__GRUP_ROWS", "1")]).unwrap_err();
    let text = problems.to_string();
    assert!(text.contains("`assembly.quiet_msec`; did you mean `assembly.quiet_ms`?"), "{text}");
    assert!(text.contains("`jurnal`; did you mean `journal`?"), "{text}");
    assert!(text.contains("IRIS__STORE__GRUP_ROWS") && text.contains("store.group_rows"), "{text}");
}

#[test]
fn an_unknown_flat_name_is_a_warning_and_names_of_others_are_ignored() {
    let env = [
        ("IRIS_HOMES", "/x"),
        ("IRIS_URL", "http://x"),
        ("IRIS_SIDECAR_SERVICE_HOST", "10.0.0.1"),
        ("IRIS_PORT_4317_TCP", "x"),
    ];
    let loaded = load("", &env).unwrap();
    assert_eq!(loaded.warnings, ["IRIS_HOMES is no setting of this program; did you mean IRIS_HOME?"]);
}

#[test]
fn a_key_of_digits_stays_text_and_prints_as_set() {
    let loaded = load("", &[("IRIS_API_KEY", "0123456789")]).unwrap();
    let effective = loaded.config.effective().to_string();
    assert!(effective.contains("[set]") && !effective.contains("0123456789"), "{effective}");
}

#[test]
fn references_expand_once_and_a_missing_one_is_named() {
    let env = [("QUIET", "777"), ("TRICK", "${env:QUIET}")];
    let loaded = load("assembly: {quiet_ms: \"${env:QUIET}\"}\nhome: \"/data/${env:SUB:-iris}\"\n", &env).unwrap();
    assert_eq!(loaded.config.assembly.quiet_ms, 777);
    assert_eq!(loaded.config.home.0, PathBuf::from("/data/iris"));
    let loaded = load("home: \"/${env:TRICK}\"\n", &env).unwrap();
    assert_eq!(loaded.config.home.0, PathBuf::from("/${env:QUIET}"));
    let text = load("home: \"${env:NOWHERE}\"\n", &[]).unwrap_err().to_string();
    assert!(text.contains("NOWHERE is not set"), "{text}");
}

#[test]
fn both_spellings_of_a_key_are_the_same_key() {
    let loaded = load("retention: {days: 3, sweepIntervalHours: 6}\n", &[]).unwrap();
    assert_eq!((loaded.config.retention.days, loaded.config.retention.sweep_interval_hours), (3, 6));
}

#[test]
fn a_wrong_type_names_the_key() {
    let text = load("assembly: {quiet_ms: soon}\n", &[]).unwrap_err().to_string();
    assert!(text.contains("assembly.quiet_ms"), "{text}");
}

#[test]
fn an_open_web_door_is_refused_unless_written_out() {
    let text = load("web: {listen: \"0.0.0.0:6920\"}\n", &[]).unwrap_err().to_string();
    assert!(text.contains("web") && text.contains("allow_unauthenticated"), "{text}");
    load("web: {listen: \"0.0.0.0:6920\", allow_unauthenticated: true}\n", &[]).unwrap();
    load("web: {listen: \"0.0.0.0:6920\"}\n", &[("IRIS_API_KEY", "k")]).unwrap();
}

#[test]
fn names_that_a_person_chooses_stay_as_written_and_their_texts_are_text() {
    let file = "forward: {timeoutMs: 700, headers: {X-Scope-OrgID: a, DD-API-KEY: b, tenant: 0012}}\n";
    let config = load(file, &[]).unwrap().config;
    assert_eq!(config.forward.headers.keys().collect::<Vec<_>>(), ["DD-API-KEY", "X-Scope-OrgID", "tenant"]);
    assert_eq!(config.forward.headers["tenant"].expose_secret(), "0012");
    assert_eq!(config.forward.timeout_ms, 700);
    let text = load("assembly: {quiet_ms: 1, quietMs: 2}\n", &[]).unwrap_err().to_string();
    assert!(text.contains("`assembly.quiet_ms` is written twice"), "{text}");
}

#[test]
fn what_belongs_to_a_text_is_text() {
    let key = |file: &str, env: &[(&str, &str)]| {
        let loaded = load(file, env).map_err(|problems| problems.to_string());
        loaded.map(|loaded| loaded.config.web.api_key.map(|key| key.expose_secret().to_owned()))
    };
    assert_eq!(key("web: {api_key: 0123456789}\n", &[]), Ok(Some("0123456789".to_owned())));
    assert_eq!(key("web: {apiKey: \"${env:KEY}\"}\n", &[("KEY", "1234")]), Ok(Some("1234".to_owned())));
    assert_eq!(key("{\"web\": {\"api_key\": \"1e5\"}}", &[]), Ok(Some("1e5".to_owned())));
    assert_eq!(key("web: {api_key: true}\n", &[]), Ok(Some("true".to_owned())));
    assert_eq!(key("web: {api_key: null}\n", &[]), Ok(None));
    assert!(key("web: {api_key: \"\"}\n", &[]).unwrap_err().contains("blank"));
    let config =
        load("receive: {http: {listen: off, allowed_hosts: \"${env:H}\"}}\n", &[("H", "a, 7")]).unwrap().config;
    assert_eq!(config.receive.http.listen, crate::door::Listen::Off);
    assert_eq!(config.receive.http.allowed_hosts, ["a", "7"]);
}

#[test]
fn an_error_never_shows_a_value() {
    for file in [
        "assembly: {quiet_ms: hunter2}\n",
        "web: {api_key: {hunter2: 1}}\n",
        "web: hunter2\n",
        "logging: {level: hunter2}\n",
        "retention: {days: [hunter2]}\n",
        "web: {api_key: \"hunter2}\n",
        "web: {api_key: hunter2\n  listen: 1\n",
        "hunter2\n",
    ] {
        let text = load(file, &[]).unwrap_err().to_string();
        assert!(!text.contains("hunter2"), "{file}: {text}");
    }
    for (name, value) in [("IRIS__ASSEMBLY__QUIET_MS", "hunter2"), ("IRIS__WEB", "hunter2")] {
        let text = load("", &[(name, value)]).unwrap_err().to_string();
        assert!(!text.contains("hunter2"), "{text}");
    }
    let text = load("retention: {days: 424242424242}\n", &[]).unwrap_err().to_string();
    assert!(text.contains("retention.days") && !text.contains("424242"), "{text}");
}

#[test]
fn flags_are_checked_like_the_file_and_all_at_once() {
    let flags = [("assembly.quiet_msec", "1"), ("jurnal.sync", "off")];
    let flags = flags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let text = Config::load(&Sources { flags, ..Sources::default() }).unwrap_err().to_string();
    assert!(text.contains("did you mean `assembly.quiet_ms`?") && text.contains("did you mean `journal`?"), "{text}");
    let flags = [("eval.rule_thresholds", "{}"), ("forward.headers.DD-Key", "12"), ("assembly.quietMs", "5")];
    let flags = flags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let config = Config::load(&Sources { flags, ..Sources::default() }).unwrap().config;
    assert_eq!((config.assembly.quiet_ms, config.forward.headers["DD-Key"].expose_secret()), (5, "12"));
}

#[test]
fn the_home_is_where_the_most_exact_source_says() {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let home = |flags: &[(&str, &str)], env: &[(&str, &str)]| {
        Sources { file: None, env: pairs(env), flags: pairs(flags) }.home().display().to_string()
    };
    let env = [("HOME", "/u"), ("IRIS_HOME", "~/flat"), ("IRIS__HOME", "/nested")];
    assert_eq!(home(&[("home", "/one"), ("home", "~/two")], &env), "/u/two");
    assert_eq!(home(&[], &env), "/nested");
    assert_eq!(home(&[], &env[..2]), "/u/flat");
    assert_eq!(home(&[], &env[..1]), "/u/.iris");
}

#[test]
fn a_collector_of_the_environment_is_in_effect_and_a_bad_one_is_a_warning() {
    let loaded = load("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")]).unwrap();
    assert_eq!(loaded.config.forward.origin, crate::forward::Origin::Inherited);
    assert_eq!(loaded.config.effective()["forward"]["endpoint"], "http://collector:4318");
    let loaded = load("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")]).unwrap();
    assert_eq!((loaded.config.forward.endpoint, loaded.warnings.len()), (None, 1));
}

#[test]
fn every_room_is_asked_and_what_nobody_obeys_is_refused() {
    let file = "journal: {bytes_max: 1, sync_interval_ms: 1001}\nassembly: {open_max: 0, idle_ms: 7, give_up_ms: 6}\n\
                store: {readers: 0}\neval: {rule_lists: {blocklists: [a]}}\n";
    let text = load(file, &[]).unwrap_err().to_string();
    for key in ["bytes_max", "sync_interval_ms", "open_max", "idle_ms", "store.readers", "rule_lists"] {
        assert!(text.contains(key), "{key}: {text}");
    }
}

#[test]
fn a_device_is_read_up_to_the_limit() {
    let text = load("home: \"${file:/dev/zero}\"\n", &[]).unwrap_err().to_string();
    assert!(text.contains("/dev/zero: longer than 1048576 bytes"), "{text}");
}

#[test]
fn prices_are_set_and_checked() {
    let file = "cost:\n  prices:\n    - {model: my-deploy, provider: azure.ai.openai, like: openai/gpt-4o}\n    - {model: local, input: 0, output: 0.5}\n";
    let config = load(file, &[]).unwrap().config;
    assert_eq!(config.cost.prices.len(), 2);
    assert_eq!((config.cost.prices[1].output, config.cost.list_prices), (Some(0.5), true));
    let env =
        [("IRIS__COST__PRICES", r#"[{"model": "m", "input": 1, "output": 2}]"#), ("IRIS__COST__LIST_PRICES", "false")];
    let config = load("", &env).unwrap().config;
    assert_eq!((config.cost.prices[0].model.as_str(), config.cost.list_prices), ("m", false));
    for wrong in
        ["{model: m}", "{model: m, input: -1}", "{model: m, like: nothing}", "{model: m, input: 1, oputput: 2}"]
    {
        assert!(load(&format!("cost: {{prices: [{wrong}]}}\n"), &[]).is_err(), "{wrong}");
    }
}

/// Guarantees: a list of keys is read as it is written, digits and references too, and prints without the keys.
#[test]
fn keys_are_read_as_they_are_written() {
    let file =
        "keys:\n  - name: one\n    key: 0123\n  - {name: two, key: '${env:K}', tenant: red, scopes: [read, admin]}\n";
    let sources = Sources {
        file: Some(("f.yaml".to_owned(), file.to_owned())),
        env: vec![("K".to_owned(), "0x1f".to_owned())],
        ..Sources::default()
    };
    let config = Config::load(&sources).unwrap().config;
    let keys: Vec<&str> = config.keys.iter().map(|key| key.key.as_ref().unwrap().expose_secret()).collect();
    assert_eq!(keys, ["0123", "0x1f"]);
    assert_eq!(
        (config.keys[0].tenant.as_str(), config.keys[0].scopes.len(), config.keys[1].scopes.len()),
        ("local", 2, 2)
    );
    assert!(!config.effective().to_string().contains("0123") && !config.effective().to_string().contains("0x1f"));
    let wrong =
        Sources { file: Some(("f.yaml".to_owned(), "keys: [{name: one, kay: x}]".to_owned())), ..Sources::default() };
    assert!(Config::load(&wrong).unwrap_err().to_string().contains("kay"));
}

/// Scenario: lists of lists of lists of the same values, half a million in 300 bytes.
/// Guarantees: refused, and what is wrong is said.
#[test]
fn aliases_of_aliases_are_bounded() {
    let file = include_str!("../../tests/cases/fuzz/config_yaml/nested_aliases.yaml");
    let sources = Sources { file: Some(("f.yaml".to_owned(), file.to_owned())), ..Sources::default() };
    let error = Config::load(&sources).unwrap_err().to_string();
    assert!(error.contains("alias") && error.contains("10000"), "{error}");
    let file = "assembly: {quiet_ms: &wait 700, idle_ms: *wait}";
    let sources = Sources { file: Some(("f.yaml".to_owned(), file.to_owned())), ..Sources::default() };
    assert_eq!(Config::load(&sources).unwrap().config.assembly.idle_ms, 700);
}

#[test]
fn every_kind_of_problem_is_named_in_one_go() {
    let file = "web: {prt: 1}\nassembly: {quiet_ms: abc, idle_ms: [1]}\nforward: {endpoint: \"otel:4317\"}\nkeys: [{name: 3}]\n";
    let text = load(file, &[]).unwrap_err().to_string();
    for part in ["web.prt", "assembly.quiet_ms", "assembly.idle_ms", "forward.endpoint", "keys[0]"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// Scenario: flat names that are misspelt, or a key written with single underscores.
/// Guarantees: each is told with the name that was meant.
#[test]
fn a_flat_name_is_told_with_the_one_that_was_meant() {
    for (given, meant) in [
        ("IRIS_RETENTION_DAYS", "IRIS__RETENTION__DAYS"),
        ("IRIS_FORWARD_ENDPOINT", "IRIS__FORWARD__ENDPOINT"),
        ("IRIS_FORWARD_ENPOINT", "IRIS__FORWARD__ENDPOINT"),
        ("IRIS_LOG_LEVLE", "IRIS_LOG_LEVEL"),
        ("IRIS_ANTROPIC_API_KEY", "IRIS_ANTHROPIC_API_KEY"),
    ] {
        let loaded = load("", &[(given, "7")]).unwrap();
        assert_eq!(loaded.warnings, [format!("{given} is no setting of this program; did you mean {meant}?")]);
    }
}

/// Scenario: values of wrong types.
/// Guarantees: what is expected is said in plain words; no name of a type of this program is told.
#[test]
fn what_is_expected_is_said_in_plain_words() {
    for (name, value, said) in [
        ("IRIS__RETENTION__DAYS", "abc", "retention.days: found text, expected a whole number, 0 or more"),
        (
            "IRIS__RETENTION__DAYS",
            "-1",
            "retention.days: a number is not valid here, expected a whole number, 0 or more",
        ),
        ("IRIS__REDACT__ENABLED", "7", "redact.enabled: found a number, expected true or false"),
        ("IRIS__ASSEMBLY", "7", "assembly: found a number, expected a mapping"),
    ] {
        let text = load("", &[(name, value)]).unwrap_err().to_string();
        assert!(text.contains(said), "{name}={value}: {text}");
        for of_ours in ["u32", "u64", "usize", "struct", "bool"] {
            assert!(!text.split([' ', ',']).any(|word| word == of_ours), "{text}");
        }
    }
}
