//! What a search finds, beside a plain look at every text.

use std::cmp::Reverse;
use std::time::Duration;

use iris_core::model::{Tenant, ToolCall, Trace, TraceId};
use serde_json::json;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::fixtures::*;
use super::pages::judge;
use crate::store::{self, Budget, Store, TraceQuery, Unread};

/// Words of which the first are in most texts and the last in hardly any.
const WORDS: [&str; 22] = [
    "the",
    "and",
    "forecast",
    "Weather",
    "CAFÉ",
    "naïve",
    "cafe\u{301}s",
    "Über",
    "e-mail",
    "user_id",
    "Ärger",
    "天気",
    "Привет",
    "8.5%",
    "snow\u{2014}storm",
    "rain,",
    "\u{1F600}",
    "foreshadow",
    "null",
    "kilo\u{212A}elvin",
    "zephyr",
    "quokka",
];
const SOUGHT: [&str; 34] = [
    "the",
    "THE",
    "he",
    "e",
    "forecast",
    "fore",
    "shadow",
    "weather",
    "eath",
    "cafe",
    "Café",
    "cafés",
    "naive",
    "über",
    "uber",
    "e-mail",
    "mail",
    "user_id",
    "id",
    "arger",
    "天気",
    "気",
    "привет",
    "8.5%",
    "8",
    "snow\u{2014}storm",
    "rain, the",
    "the and",
    "\u{1F600}",
    "null",
    "kkelvin",
    "zephyr",
    "quokka",
    "nowhere",
];

fn text(dice: &mut Dice, words: u64) -> String {
    let word = |dice: &mut Dice| WORDS[dice.roll(22).min(dice.roll(22)).min(dice.roll(22)) as usize];
    (0..words).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
}

fn plain(text: &str) -> String {
    text.to_lowercase().nfd().filter(|letter| !is_combining_mark(*letter)).nfc().collect()
}

/// Whether it stands in a text of the trace.
fn has(trace: &Trace, sought: &str) -> bool {
    let calls = serde_json::to_string(&trace.tool_calls).unwrap();
    let metadata = serde_json::to_string(&trace.metadata).unwrap();
    let texts = [trace.input.as_deref(), trace.output.as_deref(), Some(&calls), Some(&metadata)];
    let all = texts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    plain(&all).contains(&plain(sought))
}

async fn filled(store: &Store, dice: &mut Dice) -> Vec<Trace> {
    let mut all = Vec::new();
    for n in 1..=240 {
        let words = if n % 40 == 0 { 6000 } else { 1 + dice.roll(12) };
        let mut input = text(dice, words);
        if n % 23 == 0 {
            // A letter that is told by its neighbours alone: the row says nothing of its words.
            input.push_str(" \u{1112}\u{1161}\u{11AB}");
        }
        let call =
            ToolCall { tool_name: "look_up".to_owned(), output: Some(json!(text(dice, 3))), ..ToolCall::default() };
        let one = Trace {
            tenant: if n % 7 == 0 { Tenant::new("red") } else { Tenant::local() },
            input: Some(input),
            output: (dice.roll(3) > 0).then(|| text(dice, 5)),
            tool_calls: Some(vec![call]),
            metadata: object(json!({ "note": text(dice, 2) })),
            runs: Vec::new(),
            ..trace(n, 1)
        };
        judge(store, one.clone(), evaluation(n, &format!("e-{n}"), 0.5)).await;
        all.push(one);
        if dice.roll(30) == 0 {
            store.flush().await.unwrap();
        }
    }
    store.flush().await.unwrap();
    all
}

/// What a search finds, and what it could not look at.
async fn searched(store: &Store, tenant: &Tenant, query: &TraceQuery) -> (Vec<TraceId>, Option<Unread>) {
    let page = store.traces(tenant, query, Budget { bytes: 0, shrink: |_| false }).await.unwrap();
    let found: Vec<TraceId> = page.rows.iter().map(|row| row.trace.trace_id).collect();
    assert_eq!(page.total as usize, found.len(), "{query:?}");
    (found, page.unread)
}

/// Searches until all was looked at; how much was found, in how many questions.
async fn same(store: &Store, all: &[Trace], tenant: &Tenant, sought: &[&str]) -> (usize, usize) {
    let words = sought.iter().map(|word| (*word).to_owned()).collect();
    let mut query = TraceQuery { words, limit: 1000, ..TraceQuery::default() };
    let fits = |trace: &&Trace| trace.tenant == *tenant && sought.iter().all(|word| has(trace, word));
    let mut expected: Vec<&Trace> = all.iter().filter(fits).collect();
    expected.sort_unstable_by_key(|trace| Reverse(trace.timestamp));
    let (mut found, mut questions) = (Vec::new(), 0);
    loop {
        let (some, unread) = searched(store, tenant, &query).await;
        found.extend(some);
        questions += 1;
        let Some(unread) = unread else { break };
        assert!(unread.traces > 0 && questions < 20, "{sought:?}");
        let until_there = expected.iter().take_while(|trace| trace.timestamp > unread.until).count();
        assert!(found.len() >= until_there, "{sought:?} of {tenant:?}: what began later was looked at");
        query.until = Some(unread.until);
    }
    let expected: Vec<TraceId> = expected.into_iter().map(|trace| trace.trace_id).collect();
    assert_eq!(found, expected, "{sought:?} of {tenant:?}");
    (expected.len(), questions)
}

/// Scenario: texts short and long in several scripts, with letters whose words no row keeps; searched for words, parts of
/// words, words in a row and signs; again after another start, and in a file of which no row says anything of its words.
/// Guarantees: what is found, and how much that is, is what a look at every text finds, for each tenant; where one question
/// does not look at all, the newest come first and the next goes on where it says.
#[test]
fn a_search_finds_what_a_look_at_every_text_finds() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (mut store, _) = open(home.path());
        let all = filled(&store, &mut Dice(0x2545_f491_4f6c_dd1d)).await;
        for time in ["at first", "after a start", "as an earlier version left it"] {
            let (mut some, mut further) = (0, 0);
            for tenant in [Tenant::local(), Tenant::new("red")] {
                for (word, other) in SOUGHT.iter().zip(SOUGHT.iter().skip(5)) {
                    let (found, questions) = same(&store, &all, &tenant, &[word]).await;
                    some += usize::from(found > 0);
                    further += questions - 1;
                    same(&store, &all, &tenant, &[word, other]).await;
                }
            }
            assert!(some > 40, "{some} searches of {time} found something");
            assert!(further > 5, "{further} searches of {time} went on in another question");
            store.checkpoint().await.unwrap();
            store.close(Duration::from_secs(20)).await.unwrap();
            let connection = store::open::engine(home.path(), &config()).unwrap();
            let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
            if time == "after a start" {
                assert_eq!(count("SELECT count(*) FROM traces WHERE words IS NULL"), 10);
                connection.execute_batch("UPDATE traces SET words = NULL; CHECKPOINT").unwrap();
            }
            drop(connection);
            store = open(home.path()).0;
        }
    });
}
