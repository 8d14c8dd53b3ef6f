//! Whose the parts of a message are: a gateway's key lets each resource name its tenant.

use std::collections::BTreeMap;

use iris_core::model::Tenant;
use iris_core::otlp::{self, Walked};

use super::admission::Permit;
use super::counters::{ReceiveCounters, add};
use super::submit::{Refused, Submission};

/// The resource attribute that names a tenant. It goes before the header of the request, which is for the rest.
pub const TENANT_ATTRIBUTE: &str = "iris.tenant";

/// The message by tenant, each share with its items. A resource that names none that may be is rejected alone.
pub(super) fn shares(
    submission: Submission,
    walked: &mut Walked,
    permit: &mut Permit,
    counters: &ReceiveCounters,
) -> Result<Vec<(Submission, u64)>, Refused> {
    let (lane, encoding) = (submission.lane, submission.encoding);
    let named = otlp::of_resources(lane, encoding, &submission.body, TENANT_ATTRIBUTE)?;
    if named.iter().all(Option::is_none) {
        return Ok(vec![(submission, walked.items)]);
    }
    if !submission.names_tenants {
        add(&counters.tenants_ignored, 1);
        return Ok(vec![(submission, walked.items)]);
    }
    let mut places: BTreeMap<Option<&str>, Vec<bool>> = BTreeMap::new();
    let mut bad = 0_u64;
    for (at, name) in named.iter().enumerate() {
        let name = name.as_deref();
        let valid = name.is_none_or(Tenant::is_name);
        if !valid && bad == 0 {
            walked.message = Some(format!(
                "resource {at}: {TENANT_ATTRIBUTE} names no tenant: 1 to {} letters, digits, hyphens, underscores and dots",
                Tenant::NAME_BYTES_MAX
            ));
        }
        bad += u64::from(!valid);
        if valid && let Some(mine) = places.entry(name).or_insert_with(|| vec![true; named.len()]).get_mut(at) {
            *mine = false;
        }
    }
    permit.hold(submission.body.len() * 2)?;
    let mut shares = Vec::with_capacity(places.len());
    let all = walked.items;
    walked.items = 0;
    for (name, others) in &places {
        let mine = otlp::without_resources(lane, encoding, &submission.body, others)?;
        let body = mine.rewritten.map_or_else(|| submission.body.clone(), Into::into);
        let tenant = name.map_or_else(|| submission.tenant.clone(), Tenant::new);
        walked.items += mine.items;
        shares.push((Submission { tenant, body, ..submission.clone() }, mine.items));
    }
    walked.rejected += all - walked.items;
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use iris_core::model::Lane;
    use iris_core::otlp::{Encoding, Limits, decode_spans, json_to_protobuf};
    use serde_json::{Value, json};

    use super::super::admission::Admission;
    use super::*;
    use crate::journal::Door;

    fn resource(tenant: Option<Value>, spans: &[&str]) -> Value {
        let attributes = tenant.map_or(json!([]), |tenant| json!([{ "key": "iris.tenant", "value": tenant }]));
        let span = |name: &&str| json!({ "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": name });
        let spans: Vec<_> = spans.iter().map(span).collect();
        json!({ "resource": { "attributes": attributes }, "scopeSpans": [{ "spans": spans }] })
    }

    fn named(name: &str) -> Option<Value> {
        Some(json!({ "stringValue": name }))
    }

    /// A tenant, the names of its spans and how many items the share says it has.
    type Share = (String, Vec<String>, u64);

    fn split(message: &Value, encoding: Encoding, names_tenants: bool) -> (Vec<Share>, Walked, u64) {
        let body = serde_json::to_vec(message).unwrap();
        let body = if encoding == Encoding::Json { body } else { json_to_protobuf(Lane::Traces, &body).unwrap() };
        let mut walked = otlp::walk(Lane::Traces, encoding, &body, &Limits::default()).unwrap();
        let tenant = Tenant::new("gateway");
        let submission =
            Submission { lane: Lane::Traces, tenant, names_tenants, door: Door::Http, encoding, body: body.into() };
        let (admission, counters) = (Admission::with_bytes(1 << 20, 1 << 50), ReceiveCounters::default());
        let mut permit = admission.enter().unwrap();
        let shares = shares(submission, &mut walked, &mut permit, &counters).unwrap();
        let names = |submission: &Submission| {
            let spans = decode_spans(encoding, &submission.body).unwrap();
            spans.into_iter().map(|span| span.name).collect()
        };
        let found = shares.iter().map(|(share, items)| (share.tenant.to_string(), names(share), *items)).collect();
        (found, walked, counters.tenants_ignored.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn each_tenant_gets_its_own_and_who_names_none_is_the_keys() {
        let message = json!({ "resourceSpans": [
            resource(named("red"), &["a", "b"]),
            resource(None, &["c"]),
            resource(named("blue"), &["d"]),
            resource(named("red"), &["e"]),
        ] });
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let (found, walked, ignored) = split(&message, encoding, true);
            let share = |tenant: &str, names: &[&str]| {
                (tenant.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), names.len() as u64)
            };
            let all = [share("gateway", &["c"]), share("blue", &["d"]), share("red", &["a", "b", "e"])];
            assert_eq!(found, all);
            assert_eq!((walked.items, walked.rejected, walked.message, ignored), (5, 0, None, 0));
        }
    }

    #[test]
    fn a_name_that_no_tenant_may_have_rejects_its_resource_alone() {
        let values = [
            (json!({ "stringValue": "../etc" }), false),
            (json!({ "arrayValue": { "values": [] } }), false),
            (json!({ "boolValue": true }), true),
        ];
        for (value, is_name) in values {
            let message = json!({ "resourceSpans": [resource(named("red"), &["a"]), resource(Some(value), &["b"])] });
            let (found, walked, _) = split(&message, Encoding::Protobuf, true);
            assert!(found.iter().any(|(tenant, names, _)| tenant == "red" && names == &["a"]));
            assert_eq!((walked.items, walked.rejected), if is_name { (2, 0) } else { (1, 1) });
            assert_eq!(walked.message.is_some_and(|why| why.contains("resource 1: iris.tenant")), !is_name);
        }
    }

    #[test]
    fn of_another_key_it_is_ignored_and_counted() {
        let message = json!({ "resourceSpans": [resource(named("red"), &["a"]), resource(None, &["b"])] });
        let (found, walked, ignored) = split(&message, Encoding::Json, false);
        assert_eq!(found, [("gateway".to_owned(), vec!["a".to_owned(), "b".to_owned()], 2)]);
        assert_eq!((walked.items, walked.rejected, ignored), (2, 0, 1));
    }
}
