//! The traces of a window as JUnit XML: one suite an agent, one case a trace; skipped is one of which it could not be said.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::Looked;
use crate::cli::Stop;
use crate::cli::text::inert;

/// Writes the report. Characters that XML does not have are replaced.
/// What shuts the gate whatever the traces say is a failed case of its own.
pub(super) fn report(looked: &[Looked], since: &str, shut: Option<&str>) -> Result<String, Stop> {
    let mut suites: BTreeMap<String, TestSuite> = BTreeMap::new();
    if let Some(why) = shut {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("gate").set_message(why);
        let mut suite = TestSuite::new("gate");
        suite.add_test_case(TestCase::new("traces of the window", status));
        suites.insert(String::new(), suite);
    }
    for one in looked {
        let agent = inert(&one.agent);
        let suite = suites.entry(agent.clone()).or_insert_with(|| TestSuite::new(agent.clone()));
        let status = if one.trips {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(format!("{}/{}", one.state, one.basis));
            status.set_message(inert(&one.by.join(", ")));
            status.set_description(one.messages.iter().map(|message| inert(message)).collect::<Vec<_>>().join("\n"));
            status
        } else if one.state == "unknown" {
            // It did not pass: it could not be said.
            let mut status = TestCaseStatus::skipped();
            status.set_type(format!("{}/{}", one.state, one.basis));
            status.set_message(inert(&one.by.join(", ")));
            status
        } else {
            TestCaseStatus::success()
        };
        let mut case = TestCase::new(inert(&one.trace_id), status);
        case.set_classname(agent);
        if let Some(took) = one.latency_ms.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok()) {
            case.set_time(took);
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new(format!("iris-sidecar gate since {since}"));
    report.add_test_suites(suites.into_values());
    report.to_string().map_err(Stop::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(agent: &str, id: &str, state: &str, message: &str) -> Looked {
        Looked {
            trace_id: id.to_owned(),
            agent: agent.to_owned(),
            timestamp: "2026-12-01T09:30:00.000Z".to_owned(),
            latency_ms: Some(1500.0),
            state: state.to_owned(),
            basis: "evidence_veto".to_owned(),
            by: vec!["no_pii".to_owned()],
            messages: vec![message.to_owned()],
            trips: state == "fail",
        }
    }

    #[test]
    fn every_trace_is_a_case_and_hostile_text_stays_text() {
        let hostile = "x\u{0}\u{1b}[31m]]></failure><testcase name=\"forged\"/>\u{ffff}\u{202e}";
        let all = [
            looked("clerk", "aa", "fail", hostile),
            looked("clerk", "bb", "pass", ""),
            looked(hostile, "cc", "pass", ""),
            looked("clerk", "dd", "unknown", ""),
        ];
        let xml = report(&all, "2026-12-01", None).unwrap();
        assert!(xml.contains("tests=\"4\" skipped=\"1\" failures=\"1\""), "{xml}");
        assert!(!xml.contains("<testcase name=\"forged\""), "{xml}");
        let shut = report(&[], "2026-12-01", Some("0 traces ended in the window")).unwrap();
        assert!(shut.contains("failures=\"1\"") && shut.contains("message=\"0 traces ended in the window\""), "{shut}");
        let allowed = |letter: char| matches!(letter, '\t' | '\n' | '\r') || letter >= ' ' && letter != '\u{ffff}';
        assert!(xml.chars().all(allowed) && !xml.contains('\u{202e}'), "{xml:?}");
    }
}
