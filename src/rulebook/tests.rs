use std::fs;
use std::os::unix::fs::PermissionsExt;

use iris_core::evaluate::{self, Identity, Settings, Subject};
use iris_core::model::{EvalType, Evaluation, Timestamp};
use iris_core::rules::custom::{Definition, Severity};

use super::*;

const DAMAGED: &str = r#"{"id": "rule-00000bad", "name": "from later",   "severity": "critical", "definition": {"type": "moon_phase", "config": {"n": 1e400}}}"#;

struct Stand {
    folder: tempfile::TempDir,
    rulebook: Rulebook,
}

fn stand() -> Stand {
    let folder = tempfile::tempdir().unwrap();
    let rulebook = Rulebook::open(folder.path());
    Stand { folder, rulebook }
}

fn by(tenant: &str) -> By {
    By { tenant: Tenant::new(tenant), user: "mcp", at: "2026-12-01T09:30:00.000Z".to_owned() }
}

fn rule(id: &str, name: &str, pattern: &str) -> CustomRule {
    serde_json::from_value(json!({
        "id": id, "name": name, "evalType": "safety", "severity": "high", "enabled": true,
        "definition": {"name": name, "type": "regex_no_match", "config": {"pattern": pattern}},
        "createdAt": "2026-12-01T09:30:00.000Z", "updatedAt": "2026-12-01T09:30:00.000Z", "version": 1,
    }))
    .unwrap()
}

fn judged(ruleset: &Ruleset, output: &str) -> Evaluation {
    let identity = Identity {
        id: "e".to_owned(),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    };
    let subject = Subject { output: Some(output), ..Subject::default() };
    evaluate::evaluate(ruleset, &subject, &Settings::default(), EvalType::All, identity, Timestamp::default())
}

impl Stand {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path("custom-rules.json")).unwrap_or_default()
    }

    fn again(&self) -> Rulebook {
        Rulebook::open(self.folder.path())
    }

    fn lines(&self) -> Vec<Line> {
        let wanted = Wanted { limit: 1000, ..Wanted::default() };
        self.rulebook.audit(&Tenant::local(), &wanted).unwrap().0
    }

    fn deploy(&self, id: &str, name: &str, pattern: &str) -> Result<Vec<Replaced>, Error> {
        self.rulebook.deploy(&by("local"), rule(id, name, pattern), false)
    }
}

fn fires(rulebook: &Rulebook, output: &str) -> Vec<String> {
    let evaluation = judged(&rulebook.snapshot(&Tenant::local()), output);
    let fired = evaluation.rule_results.iter().filter(|result| result.origin.is_some() && result.state == "fail");
    fired.map(|result| format!("{} {}", result.rule_id.as_deref().unwrap_or("-"), result.rule_name)).collect()
}

fn names(rulebook: &Rulebook) -> Vec<String> {
    rulebook.list(&Tenant::local()).unwrap().rules.into_iter().map(|rule| rule.name).collect()
}

/// Scenario: a rule is deployed, stopped, started and removed, each followed by another start on the same folder.
/// Guarantees: what fires is the same before and after the start; every change leaves one line; the files are private.
#[test]
fn a_change_is_in_force_at_once_and_after_a_start() {
    let stand = stand();
    assert!(fires(&stand.rulebook, "forever").is_empty());
    let before = stand.rulebook.snapshot(&Tenant::local());
    stand.deploy("rule-0000000a", "no forever", "forever").unwrap();
    assert!(fires_in(&before, "forever").is_empty(), "an evaluation under way keeps its set");
    for rulebook in [&stand.rulebook, &stand.again()] {
        assert_eq!(fires(rulebook, "live forever"), ["rule-0000000a no forever"]);
        assert!(fires(rulebook, "for a while").is_empty());
    }
    let evaluation = judged(&stand.rulebook.snapshot(&Tenant::local()), "forever");
    assert_eq!(evaluate::critical_failures(&evaluation), ["no forever"]);
    assert_eq!(evaluate::compose(&evaluation).basis, evaluate::Basis::PolicyGate);

    let stopped = stand.rulebook.toggle(&by("local"), "rule-0000000a", false).unwrap().unwrap();
    assert!(!stopped.enabled && stopped.created_at == "2026-12-01T09:30:00.000Z");
    assert!(stand.rulebook.toggle(&by("local"), "rule-0000000a", false).unwrap().is_some(), "again changes nothing");
    assert!(fires(&stand.rulebook, "forever").is_empty() && fires(&stand.again(), "forever").is_empty());
    stand.rulebook.toggle(&by("local"), "rule-0000000a", true).unwrap();
    assert_eq!(fires(&stand.again(), "forever"), ["rule-0000000a no forever"]);
    assert!(stand.rulebook.toggle(&by("local"), "rule-0000000b", true).unwrap().is_none());

    assert!(stand.rulebook.delete(&by("local"), "rule-0000000a").unwrap());
    assert!(!stand.rulebook.delete(&by("local"), "rule-0000000a").unwrap());
    assert!(fires(&stand.rulebook, "forever").is_empty() && names(&stand.again()).is_empty());

    let lines = stand.lines();
    let told: Vec<_> = lines.iter().rev().map(|line| (line.action, line.details.clone())).collect();
    let enabled = |on: bool| Map::from_iter([("enabled".to_owned(), Value::Bool(on))]);
    let severity = Map::from_iter([("severity".to_owned(), json!("high"))]);
    let (deploy, toggle) = (Action::Deploy, Action::Toggle);
    assert_eq!(
        told,
        [(deploy, severity), (toggle, enabled(false)), (toggle, enabled(true)), (Action::Delete, Map::new())]
    );
    assert!(
        lines.iter().all(|line| line.user == "mcp" && line.rule_id == "rule-0000000a" && line.tenant_id == "local")
    );
    assert_eq!(stand.rulebook.changes(&Tenant::local()), 4);
    for name in ["custom-rules.json", "audit.log"] {
        assert_eq!(fs::metadata(stand.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

fn fires_in(ruleset: &Ruleset, output: &str) -> Vec<String> {
    let evaluation = judged(ruleset, output);
    evaluation
        .rule_results
        .iter()
        .filter(|result| result.origin.is_some())
        .map(|one| one.rule_name.to_string())
        .collect()
}

/// Guarantees: a name is taken once, disabled or not; a replacement is found valid before anything is retired.
#[test]
fn a_name_is_taken_until_it_is_replaced() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "a").unwrap();
    stand.rulebook.toggle(&by("local"), "rule-0000000a", false).unwrap();
    let Err(Error::Duplicate(taken)) = stand.deploy("rule-0000000b", "ours", "b") else { panic!("taken") };
    assert_eq!((taken.id.as_str(), taken.enabled), ("rule-0000000a", false));

    let before = stand.file();
    let broken = rule("rule-0000000b", "ours", "(");
    assert!(matches!(stand.rulebook.deploy(&by("local"), broken, true), Err(Error::Invalid(_))));
    assert_eq!((stand.file(), stand.lines().len()), (before, 2));

    let replaced = stand.rulebook.deploy(&by("local"), rule("rule-0000000c", "ours", "c"), true).unwrap();
    let expected = Replaced { id: "rule-0000000a".to_owned(), eval_type: Bundle::Safety, severity: Severity::High };
    assert_eq!(replaced, [expected]);
    assert_eq!(fires(&stand.again(), "abc"), ["rule-0000000c ours"]);
    let lines = stand.lines();
    assert_eq!((lines[0].action, &lines[0].details["replaces"]), (Action::Deploy, &json!(["rule-0000000a"])));
    assert_eq!((lines[1].action, lines[1].rule_id.as_str()), (Action::Delete, "rule-0000000a"));
}

/// Scenario: a process ended after it wrote the draft of a rule file and before it took the file's place.
/// Guarantees: the old list is in force, and the next change goes through.
#[test]
fn a_crash_before_the_rename_leaves_the_old_list() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    fs::write(stand.path("custom-rules.json.new"), "{\"version\": 1, \"rules\": [{\"id\": \"ru").unwrap();
    let rulebook = stand.again();
    assert_eq!(names(&rulebook), ["ours"]);
    rulebook.deploy(&by("local"), rule("rule-0000000b", "theirs", "never"), false).unwrap();
    assert_eq!(names(&stand.again()), ["ours", "theirs"]);
    assert!(!stand.path("custom-rules.json.new").exists());
}

/// Guarantees: what cannot be written is refused, and neither the file, the log nor what fires has changed.
#[test]
fn a_change_that_cannot_be_stored_did_not_happen() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    let before = (stand.file(), stand.lines(), fires(&stand.rulebook, "forever"));
    let unchanged = |why: &str| {
        let now = (stand.file(), stand.lines(), fires(&stand.rulebook, "forever"));
        assert_eq!(now, before, "{why}");
        assert_eq!(fires(&stand.again(), "forever"), before.2, "{why}");
    };
    // A folder where the draft should be: no user may write that.
    fs::create_dir(stand.path("custom-rules.json.new")).unwrap();
    assert!(matches!(stand.deploy("rule-0000000b", "theirs", "x"), Err(Error::NotKept(_))));
    assert!(matches!(stand.rulebook.delete(&by("local"), "rule-0000000a"), Err(Error::NotKept(_))));
    unchanged("no draft can be written");
    fs::remove_dir(stand.path("custom-rules.json.new")).unwrap();

    fs::rename(stand.path("audit.log"), stand.path("kept")).unwrap();
    fs::create_dir(stand.path("audit.log")).unwrap();
    assert!(matches!(stand.deploy("rule-0000000b", "theirs", "x"), Err(Error::NotKept(_))));
    assert!(matches!(stand.rulebook.toggle(&by("local"), "rule-0000000a", false), Err(Error::NotKept(_))));
    fs::remove_dir(stand.path("audit.log")).unwrap();
    fs::rename(stand.path("kept"), stand.path("audit.log")).unwrap();
    unchanged("no line can be written");

    let closed = tempfile::tempdir().unwrap();
    fs::create_dir(closed.path().join("audit.log")).unwrap();
    let first = Rulebook::open(closed.path());
    assert!(matches!(first.deploy(&by("local"), rule("rule-0000000a", "ours", "x"), false), Err(Error::NotKept(_))));
    assert!(!closed.path().join("custom-rules.json").exists(), "there was none before");
    assert!(names(&first).is_empty());
}

/// A folder that nobody may write; the superuser may write everywhere, so this asks nothing of it.
#[test]
fn a_folder_that_cannot_be_written_refuses_and_goes_on_judging() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    fs::set_permissions(stand.folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if !rustix::process::geteuid().is_root() {
        assert!(matches!(stand.deploy("rule-0000000b", "theirs", "x"), Err(Error::NotKept(_))));
    }
    assert_eq!(fires(&stand.rulebook, "forever"), ["rule-0000000a ours"]);
    fs::set_permissions(stand.folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

/// Guarantees: an entry that cannot be read costs only itself, is told of, and stays in the file letter by letter.
#[test]
fn a_damaged_entry_is_set_aside_and_kept_as_it_is() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    let good = serde_json::to_string(&rule("rule-0000000c", "third", "x")).unwrap();
    let same_name = serde_json::to_string(&rule("rule-0000000d", "third", "y")).unwrap();
    let odd = good.replace("\"regex_no_match\"", "\"regex_no_match\", \"extra\": 1").replace("0000000c", "0000000e");
    let broken = good
        .replace("\"pattern\":\"x\"", "\"pattern\":\"(\"")
        .replace("third", "broken")
        .replace("0000000c", "0000000f");
    let hidden = broken.replace("0000000f", "0000000g").replace("\"high\"", "\"low\"");
    let text = format!(
        "{{\"version\": 1, \"note\": [ 1,2 ], \"rules\": [{DAMAGED}, {good}, {same_name}, {odd}, {broken}, {hidden}, 17]}}"
    );
    fs::write(stand.path("custom-rules.json"), text).unwrap();
    let rulebook = stand.again();
    let listing = rulebook.list(&Tenant::local()).unwrap();
    assert_eq!(listing.rules.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["rule-0000000c"]);
    let told: Vec<_> = listing.quarantined.iter().map(|one| (one.index, one.reason.as_str())).collect();
    let words = [
        "no known kind",
        "earlier entry has its name",
        "unknown field",
        "unclosed group",
        "unclosed group",
        "wrong type",
    ];
    assert_eq!(told.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6]);
    for ((_, why), words) in told.iter().zip(words) {
        assert!(why.contains(words) && !why.contains("moon"), "{words}: {why}");
    }
    assert_eq!(listing.quarantined[0].id.as_deref(), Some("rule-00000bad"));
    let [status] = rulebook.status().try_into().unwrap();
    assert_eq!((status.tenant.as_str(), status.state), ("local", "read"));
    assert_eq!((status.rules, status.enabled, status.quarantined, status.changes), (1, 1, 6, 0));
    assert!(status.loaded > Timestamp::default());

    let evaluation = judged(&rulebook.snapshot(&Tenant::local()), "fine");
    let dormant: Vec<String> = evaluate::coverage(&evaluation).dormant.into_iter().map(|one| one.rule_id).collect();
    assert_eq!(dormant, ["rule-00000bad", "rule-0000000d", "rule-0000000e", "rule-0000000f", ""]);

    rulebook.deploy(&by("local"), rule("rule-0000000b", "theirs", "x"), false).unwrap();
    assert!(stand.file().contains(DAMAGED) && stand.file().contains("\"note\": [ 1,2 ]"), "{}", stand.file());
    assert_eq!(stand.again().list(&Tenant::local()).unwrap().quarantined.len(), 6);
    assert_eq!(names(&stand.again()), ["third", "theirs"]);
}

/// Guarantees: a file that cannot be read is never written over; nothing passes meanwhile; once it is repaired all is well.
#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_makes_verdicts_unknown() {
    let many = format!("{{\"rules\": [1{}]}}", ",1".repeat(1000));
    let large = format!("{{\"rules\": [], \"x\": \"{}\"}}", "x".repeat(1 << 20));
    for text in [
        many.as_str(),
        large.as_str(),
        "",
        "not json",
        "{\"rules\": [1,]}",
        "{\"version\": 2, \"rules\": []}",
        "[]",
        "{\"rules\": [\u{0}]}",
    ] {
        let stand = stand();
        fs::write(stand.path("custom-rules.json"), text).unwrap();
        let rulebook = stand.again();
        assert!(matches!(rulebook.list(&Tenant::local()), Err(Error::Unreadable(_))), "{text:?}");
        let deployed = rulebook.deploy(&by("local"), rule("rule-0000000a", "ours", "x"), false);
        assert!(matches!(deployed, Err(Error::Unreadable(_))), "{text:?}");
        assert!(matches!(rulebook.delete(&by("local"), "rule-0000000a"), Err(Error::Unreadable(_))));
        assert_eq!(stand.file(), text);
        assert!(stand.lines().is_empty());
        let verdict =
            evaluate::compose(&judged(&rulebook.snapshot(&Tenant::local()), "A fine answer. It says what was asked."));
        assert_eq!((verdict.basis, verdict.passed), (evaluate::Basis::CriticalUnknown, false), "{text:?}");
        assert_eq!(verdict.by, ["custom-rules.json"]);
        let leak = evaluate::compose(&judged(&rulebook.snapshot(&Tenant::local()), "SSN 536-22-8716"));
        assert_eq!(leak.basis, evaluate::Basis::DetectorVeto, "a failure outranks what is unknown");

        fs::write(stand.path("custom-rules.json"), "{\"rules\": []}").unwrap();
        assert!(rulebook.list(&Tenant::local()).unwrap().rules.is_empty(), "read anew");
        rulebook.deploy(&by("local"), rule("rule-0000000a", "ours", "forever"), false).unwrap();
        assert_eq!(fires(&rulebook, "forever"), ["rule-0000000a ours"]);
    }
}

/// Guarantees: what another program wrote into the file is not lost by the next change.
#[test]
fn a_file_that_was_edited_meanwhile_is_read_first() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    let edited =
        stand.file().replace("forever", "for ever and ever").replace("\"enabled\": true", "\"enabled\": false");
    fs::write(stand.path("custom-rules.json"), edited).unwrap();
    stand.deploy("rule-0000000b", "theirs", "never").unwrap();
    let rules = stand.rulebook.list(&Tenant::local()).unwrap().rules;
    assert_eq!(rules.iter().map(|rule| rule.enabled).collect::<Vec<_>>(), [false, true]);
    assert!(stand.file().contains("for ever and ever"));
}

#[test]
fn what_a_later_version_wrote_beside_stays() {
    let stand = stand();
    stand.deploy("rule-0000000a", "ours", "forever").unwrap();
    let edited = stand.file().replace("\"enabled\": true", "\"enabled\": true, \"author\": {\"team\": [1]}");
    fs::write(stand.path("custom-rules.json"), edited).unwrap();
    stand.rulebook.toggle(&by("local"), "rule-0000000a", false).unwrap();
    let file: Value = serde_json::from_str(&stand.file()).unwrap();
    assert_eq!(file["rules"][0]["author"], json!({"team": [1]}));
    assert_eq!(file["rules"][0]["enabled"], json!(false));
}

#[test]
fn limits_are_named() {
    let stand = stand();
    let rules: Vec<CustomRule> = (0..200).map(|n| rule(&format!("rule-{n:08x}"), &format!("rule {n}"), "x")).collect();
    fs::write(stand.path("custom-rules.json"), json!({"version": 1, "rules": rules}).to_string()).unwrap();
    let Err(Error::Full(why)) = stand.deploy("rule-0000ffff", "one more", "x") else { panic!("200 are the limit") };
    assert!(why.contains("200 rules"), "{why}");
    let replaced = stand.rulebook.deploy(&by("local"), rule("rule-0000ffff", "rule 7", "x"), true).unwrap();
    assert_eq!(replaced.len(), 1, "a replacement needs no room");

    let stand = self::stand();
    let long = |n: usize| {
        let definition: Definition = serde_json::from_value(json!({
            "type": "json_schema", "config": {"schema": {"description": "x".repeat(60_000)}}
        }))
        .unwrap();
        CustomRule { definition, ..rule(&format!("rule-{n:08x}"), &format!("rule {n}"), "x") }
    };
    for n in 0..8 {
        stand.rulebook.deploy(&by("local"), long(n), false).unwrap();
    }
    let Err(Error::Full(why)) = stand.rulebook.deploy(&by("local"), long(8), false) else { panic!("512 KiB") };
    assert!(why.contains("KiB; at most 512"), "{why}");
    assert_eq!(stand.lines().len(), 8);

    let stand = self::stand();
    let heavy = |n: usize| rule(&format!("rule-{n:08x}"), &format!("rule {n}"), &format!("\\w{{6}}{n}"));
    let refused = (0..200).find_map(|n| stand.rulebook.deploy(&by("local"), heavy(n), false).err());
    let Some(Error::Full(why)) = refused else { panic!("16 MiB of compiled rules") };
    assert!(why.contains("MiB; at most 16"), "{why}");
}

/// Guarantees: no tenant sees, changes or is judged by another's rules, whatever the tenants are called.
#[test]
fn tenants_have_files_of_their_own() {
    let stand = stand();
    let names = ["local", "a", "A", "a/b", "a_b", "../a", "", "x".repeat(300).as_str()].map(str::to_owned);
    for (n, tenant) in names.iter().enumerate() {
        let one = rule(&format!("rule-{n:08x}"), "ours", "forever");
        stand.rulebook.deploy(&by(tenant), one, false).unwrap();
    }
    let rulebook = stand.again();
    for (n, tenant) in names.iter().enumerate() {
        let tenant = Tenant::new(tenant);
        let rules = rulebook.list(&tenant).unwrap().rules;
        assert_eq!(rules.iter().map(|rule| rule.id.clone()).collect::<Vec<_>>(), [format!("rule-{n:08x}")]);
        assert!(!rulebook.delete(&By { tenant: tenant.clone(), ..by("local") }, "rule-000000ff").unwrap());
        let wanted = Wanted { limit: 9, ..Wanted::default() };
        assert_eq!(rulebook.audit(&tenant, &wanted).unwrap().1, 1, "{tenant}");
    }
    let in_folder = fs::read_dir(stand.folder.path()).unwrap().count();
    assert_eq!(in_folder, names.len() + 1, "files of rules, and the log");
}

/// Guarantees: a log cut by a crash, or grown too large, takes the next line and is read without the damage.
#[test]
fn the_log_outlives_a_crash_and_turns_over() {
    let stand = stand();
    stand.deploy("rule-0000000a", "Ours", "forever").unwrap();
    let whole = fs::read_to_string(stand.path("audit.log")).unwrap();
    fs::write(stand.path("audit.log"), format!("{whole}{{\"ts\": \"2026-12-01T0")).unwrap();
    stand.deploy("rule-0000000b", "theirs", "never").unwrap();
    assert_eq!(stand.lines().len(), 2);

    let find = |wanted: Wanted| {
        let (lines, total) = stand.rulebook.audit(&Tenant::local(), &Wanted { limit: 1, ..wanted }).unwrap();
        (lines.first().map(|line| line.rule_name.clone()).unwrap_or_default(), total)
    };
    assert_eq!(find(Wanted::default()), ("theirs".to_owned(), 2));
    assert_eq!(find(Wanted { offset: 1, ..Wanted::default() }), ("Ours".to_owned(), 2));
    assert_eq!(find(Wanted { search: Some("oUR".to_owned()), ..Wanted::default() }), ("Ours".to_owned(), 1));
    assert_eq!(find(Wanted { action: Some(Action::Toggle), ..Wanted::default() }), (String::new(), 0));
    assert_eq!(
        find(Wanted { since: Some("2026-12-01T09:30:00.001Z".to_owned()), ..Wanted::default() }),
        (String::new(), 0)
    );

    let filler = format!("{}\n", "x".repeat(1 << 20));
    fs::write(stand.path("audit.log"), filler.repeat(9) + &whole).unwrap();
    stand.rulebook.delete(&by("local"), "rule-0000000a").unwrap();
    assert!(fs::metadata(stand.path("audit.log")).unwrap().len() < 1000);
    assert!(fs::metadata(stand.path("audit.log.1")).unwrap().len() > 8 << 20);
    assert_eq!(stand.lines().iter().map(|line| line.action).collect::<Vec<_>>(), [Action::Delete, Action::Deploy]);
}
