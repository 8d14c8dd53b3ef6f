//! Stopped abruptly at any point and started again: nothing is lost, nothing is there twice.

use super::*;

/// A small generator, so that a failing seed can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// Requests for twelve agents' traces and four without AI, mixed, split and partly sent twice.
fn requests(dice: &mut Dice) -> Vec<Vec<Made>> {
    let mut spans = Vec::new();
    for trace in 1..=16 {
        let is_agent = trace <= 12;
        for span in 1..=4 {
            let role = match span {
                _ if !is_agent => "",
                1 => "agent",
                2 => "tool",
                _ => "",
            };
            spans.push(made(trace, span, role).just_now());
        }
    }
    for index in (1..spans.len()).rev() {
        let other = usize::try_from(dice.roll(index as u64 + 1)).unwrap();
        spans.swap(index, other);
    }
    let again: Vec<_> = spans.iter().take(6).copied().collect();
    spans.extend(again);
    let mut requests = Vec::new();
    let mut rest = spans.as_slice();
    while !rest.is_empty() {
        let count = usize::try_from(1 + dice.roll(5)).unwrap().min(rest.len());
        let (request, later) = rest.split_at(count);
        requests.push(request.to_vec());
        rest = later;
    }
    requests
}

async fn check(running: &Running, seed: u64) {
    for trace in 1..=12 {
        let found = running.trace(trace, 4).await;
        let spans = running.store.spans(&Tenant::local(), trace_id(trace), Bounds::WHOLE).await.unwrap().items;
        let ids: BTreeSet<_> = spans.iter().map(|row| row.span_id).collect();
        assert_eq!((spans.len(), ids.len()), (4, 4), "seed {seed}, trace {trace}");
        let mut versions: BTreeMap<u32, usize> = BTreeMap::new();
        let evaluations = running.evaluations(trace).await;
        for evaluation in &evaluations {
            *versions.entry(evaluation.trace_version.unwrap()).or_default() += 1;
        }
        assert!(versions.values().all(|count| *count == 1), "seed {seed}, trace {trace}: {versions:?}");
        assert_eq!(versions.keys().max(), Some(&found.version), "seed {seed}, trace {trace}");
        assert_eq!(evaluations[0].provenance["rows"], json!(4), "seed {seed}, trace {trace}");
    }
}

async fn round(seed: u64) {
    let home = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut running = start(home.path(), mind(), &QUICK).await;
    for request in requests(&mut dice) {
        running.send(&request).await;
        if dice.roll(4) == 0 {
            tokio::time::sleep(Duration::from_millis(dice.roll(60))).await;
        }
        match dice.roll(9) {
            0 => {
                running.kill().await;
                running = start(home.path(), mind(), &QUICK).await;
            }
            1 if dice.roll(3) == 0 => {
                running.stop().await;
                running = start(home.path(), mind(), &QUICK).await;
            }
            _ => {}
        }
    }
    check(&running, seed).await;
    running.until("everything is let go", |status| status.traces.open == 0).await;
    running.kill().await;
    // Once more, from whatever was committed: the journal gives the rest again.
    let running = start(home.path(), mind(), &QUICK).await;
    check(&running, seed).await;
    running.until("everything is let go", |status| status.traces.open == 0).await;
    check(&running, seed).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_points_nothing_is_lost_and_nothing_doubled() {
    let rounds = std::env::var("IRIS_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    for seed in 1..=rounds {
        round(seed).await;
    }
}
