//! Whatever the order, the splits and the memory: every row leaves once, every trace is judged whole in the end,
//! and the position never passes a row that no evaluation covers.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// A store of its own: what was stored, and which evaluations are committed.
#[derive(Default)]
struct Shelf {
    rows: HashMap<RowKey, Vec<Arc<Row>>>,
    evaluations: HashMap<RowKey, Arc<Evaluation>>,
    judged: HashMap<RowKey, HashSet<Position>>,
}

struct World {
    assembler: Assembler,
    now: Duration,
    shelf: Shelf,
    pushed: HashSet<Position>,
    left: HashMap<Position, &'static str>,
    jobs: Vec<Settling>,
    loads: Vec<RowKey>,
    tickets: Vec<u64>,
    seq: u64,
}

impl World {
    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Store(rows) => {
                    for row in rows {
                        assert!(self.left.insert(row.position, "stored").is_none(), "left twice");
                        self.shelf.rows.entry(row.key()).or_default().push(row);
                    }
                }
                Effect::Drop { rows, .. } => {
                    for row in rows {
                        assert!(self.left.insert(row, "dropped").is_none(), "left twice");
                    }
                }
                Effect::Settle(settling) => self.jobs.push(*settling),
                Effect::Load(key) => self.loads.push(key),
                Effect::Spill(_) => {}
            }
        }
    }

    fn load(&mut self) {
        if let Some(key) = self.loads.pop() {
            let rows = self.shelf.rows.get(&key).cloned().unwrap_or_default();
            let evaluation = self.shelf.evaluations.get(&key).cloned();
            let version = evaluation.as_ref().and_then(|e| e.trace_version).unwrap_or(0);
            let effects = self.assembler.loaded(self.now, &key, Loaded { rows, version, evaluation });
            self.take(effects);
        }
    }

    fn judge(&mut self) {
        if let Some(settling) = self.jobs.pop() {
            let evaluation = Arc::new(Evaluation {
                tenant: settling.key.tenant.clone(),
                trace_id: Some(settling.key.trace_id),
                seen_through: settling.seen_through,
                trace_version: Some(settling.version),
                ..Evaluation::clone(&evaluation(1, 1, 0))
            });
            let covered = self.shelf.judged.entry(settling.key.clone()).or_default();
            covered.extend(settling.rows.iter().map(|row| row.position));
            self.shelf.evaluations.insert(settling.key.clone(), evaluation.clone());
            let judged = self.assembler.judged(&settling.key, Some(evaluation));
            self.tickets.push(judged.ticket);
        }
    }

    fn pass(&mut self, wait: Duration, room: usize) {
        self.now += wait;
        let effects = self.assembler.tick(self.now, Room { judgings: room, loads: room / 2 });
        self.take(effects);
    }

    /// The position never covers a row that is still undecided, or stored, an agent's and judged by nobody.
    fn check_position(&self) {
        let settled = self.assembler.settled().traces;
        for position in self.pushed.iter().filter(|position| position.seq <= settled) {
            assert!(self.left.contains_key(position), "{position:?} is undecided and passed");
        }
        for (key, rows) in &self.shelf.rows {
            if !rows.iter().any(|row| row.reading.is_agentic()) {
                continue;
            }
            let judged = self.shelf.judged.get(key);
            let known = |row: &Arc<Row>| {
                judged.is_some_and(|judged| {
                    rows.iter().any(|other| {
                        other.span_id == row.span_id
                            && other.content_hash == row.content_hash
                            && judged.contains(&other.position)
                    })
                })
            };
            for row in rows.iter().filter(|row| row.position.seq <= settled) {
                assert!(known(row) || !row.reading.is_agentic(), "{:?} is not covered and passed", row.position);
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Push(usize),
    Pass(u64),
    Judge,
    Commit,
    Load,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1..5_usize).prop_map(Act::Push),
        3 => prop_oneof![Just(0_u64), Just(1), 100..3_000_u64, 3_000..70_000_u64].prop_map(Act::Pass),
        2 => Just(Act::Judge),
        2 => Just(Act::Commit),
        2 => Just(Act::Load),
    ];
    prop::collection::vec(act, 1..120)
}

/// Spans of four traces: agents, tools and plain spans in trees, one trace without any AI, some sent twice.
fn spans() -> impl Strategy<Value = Vec<Made>> {
    let mut all = Vec::new();
    for trace in 1..=4 {
        let root = made(trace, 1);
        all.push(if trace == 4 { root } else { root.role(Role::Agent) });
        for span in 2..=7_u8 {
            let child = made(trace, span).under(span / 2).text(&"x".repeat(usize::from(span) * 40));
            all.push(if trace != 4 && span % 2 == 0 { child.role(Role::Tool) } else { child });
        }
        all.push(made(trace, 2).under(1).text("again").unended());
    }
    let twice: Vec<_> = all.iter().take(6).cloned().collect();
    all.extend(twice);
    Just(all).prop_shuffle()
}

fn limits() -> impl Strategy<Value = (Config, Settings)> {
    (
        prop_oneof![Just(0_usize), Just(4_000), Just(1 << 20)],
        prop_oneof![Just(0_usize), Just(3_000), Just(1 << 20)],
        1..6_usize,
    )
        .prop_map(|(text, undecided, open_max)| {
            let settings = Settings { text_bytes_max: text, undecided_bytes_max: undecided, ..Settings::default() };
            (Config { open_max, ..Config::default() }, settings)
        })
}

fn run(spans: &[Made], acts: &[Act], config: Config, settings: Settings) -> World {
    let mut world = World {
        assembler: Assembler::new(config, settings, Settled::default()),
        now: ms(10),
        shelf: Shelf::default(),
        pushed: HashSet::new(),
        left: HashMap::new(),
        jobs: Vec::new(),
        loads: Vec::new(),
        tickets: Vec::new(),
        seq: 0,
    };
    let mut left = spans;
    let rest = [Act::Push(spans.len())];
    for act in acts.iter().chain(&rest) {
        match act {
            Act::Push(count) => {
                let (request, later) = left.split_at((*count).min(left.len()));
                left = later;
                world.seq += 1;
                let seq = world.seq;
                let rows: Vec<_> = request.iter().zip(0..).map(|(span, ordinal)| span.at(seq, ordinal)).collect();
                world.pushed.extend(rows.iter().map(|row| row.position));
                let effects = world.assembler.push(world.now, Lane::Traces, seq, rows);
                world.take(effects);
            }
            Act::Pass(wait) => world.pass(ms(*wait), 2),
            Act::Judge => world.judge(),
            Act::Commit => {
                if let Some(ticket) = world.tickets.pop() {
                    world.assembler.committed(ticket);
                }
            }
            Act::Load => world.load(),
        }
        world.check_position();
    }
    // Until nothing is open any more.
    for _ in 0..2_000 {
        if world.assembler.counts().open == 0 {
            break;
        }
        world.load();
        world.judge();
        while let Some(ticket) = world.tickets.pop() {
            world.assembler.committed(ticket);
        }
        world.pass(Duration::from_secs(5), 8);
        world.check_position();
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(300)))]

    #[test]
    fn every_row_leaves_once_and_every_trace_is_judged_whole(
        spans in spans(), acts in acts(), (config, settings) in limits()
    ) {
        let world = run(&spans, &acts, config, settings);
        prop_assert_eq!(world.assembler.counts().open, 0);
        prop_assert_eq!(world.assembler.counts().text_bytes, 0);
        prop_assert_eq!(world.assembler.counts().closing_bytes, 0);
        prop_assert_eq!(world.assembler.counts().undecided_bytes, 0);
        prop_assert_eq!(world.assembler.counts().undecided, 0);
        prop_assert_eq!(world.left.len(), world.pushed.len());
        let settled = world.assembler.settled().traces;
        prop_assert_eq!(settled, world.seq);
        // Every span of the three agents' traces that is stored was part of the last judging, by content.
        for trace in 1..=3 {
            let rows = &world.shelf.rows[&key(trace)];
            let judged = &world.shelf.judged[&key(trace)];
            let wanted: HashSet<_> = rows.iter().map(|row| (row.span_id, row.content_hash)).collect();
            let got: HashSet<_> = rows
                .iter()
                .filter(|row| judged.contains(&row.position))
                .map(|row| (row.span_id, row.content_hash))
                .collect();
            prop_assert_eq!(&got, &wanted);
        }
    }
}
