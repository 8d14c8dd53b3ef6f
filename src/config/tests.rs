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
