//! Which records of a lane are under way, and how far the unbroken run of answered ones reaches.
//!
//! A state machine with the clock passed in. Records enter in the journal's order, are answered in any, and leave
//! when everything before them has: that end is the cursor.

use std::collections::BTreeMap;
use std::time::Instant;

/// Records from the cursor to the newest one that was read, at most: so many can be answered while one is not, and
/// be sent again after a restart. Fewer would let a single message that is tried again stop the lane.
pub(super) const AHEAD_MAX: usize = 128;
/// After so many failures a record no longer holds up the one behind it: perhaps only this one is at fault.
const ALONE_UNTIL: u32 = 3;
/// A record that failed this often ...
const FAILURES_MAX: u32 = 30;
/// ... while this many of its neighbours were taken is refused for what it holds, whatever the status says.
const PASSED_MIN: u32 = 8;

#[derive(Debug)]
enum Slot {
    /// Being sent.
    Flying { charge: usize, failures: u32, passed: u32 },
    /// Failed; its body is let go of and read again from the journal when it is due.
    Waiting { charge: usize, failures: u32, passed: u32, due: Instant, asked: bool },
    /// Needs nothing more.
    Answered,
}

/// A record to send again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) seq: u64,
    pub(super) charge: usize,
}

#[derive(Debug)]
pub(super) struct Window {
    slots: BTreeMap<u64, Slot>,
    through: u64,
    flying: usize,
    flying_bytes: usize,
}

impl Window {
    /// Everything up to `through` is answered.
    pub(super) fn new(through: u64) -> Self {
        Self { slots: BTreeMap::new(), through, flying: 0, flying_bytes: 0 }
    }

    /// The end of the unbroken answered run.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    /// Records being sent.
    pub(super) fn flying(&self) -> usize {
        self.flying
    }

    /// Bytes that those hold.
    pub(super) fn flying_bytes(&self) -> usize {
        self.flying_bytes
    }

    /// Whether nothing is under way, waits, or is answered beyond an unanswered one.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether no new record may enter before the oldest has left.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= AHEAD_MAX
    }

    /// A record is sent: for the first time or again.
    pub(super) fn fly(&mut self, seq: u64, charge: usize) {
        let (failures, passed) = match self.slots.get(&seq) {
            Some(Slot::Waiting { failures, passed, .. }) => (*failures, *passed),
            _ => (0, 0),
        };
        self.slots.insert(seq, Slot::Flying { charge, failures, passed });
        self.flying += 1;
        self.flying_bytes += charge;
    }

    /// A record needs nothing more: it was taken, refused, skipped or lost.
    pub(super) fn answered(&mut self, seq: u64) {
        self.land(seq);
        self.slots.insert(seq, Slot::Answered);
        while let Some(first) = self.slots.first_entry() {
            if !matches!(first.get(), Slot::Answered) {
                break;
            }
            self.through = first.remove_entry().0;
        }
    }

    /// The downstream took a record: from here on each failure of one that waits is held against the record and
    /// not against the downstream, and none waits beyond `latest`, but for those whose time the downstream chose.
    pub(super) fn neighbours_passed(&mut self, latest: Instant) {
        for slot in self.slots.values_mut() {
            if let Slot::Waiting { failures, passed, due, asked, .. } = slot {
                if *passed == 0 {
                    *failures = 0;
                    *due = if *asked { *due } else { latest.min(*due) };
                }
                *passed = passed.saturating_add(1);
            }
        }
    }

    /// How often this record failed by its own fault, `None` while that is not known.
    pub(super) fn own_failures(&self, seq: u64) -> Option<u32> {
        match self.slots.get(&seq) {
            Some(Slot::Flying { failures, passed: 1.., .. }) => Some(*failures),
            _ => None,
        }
    }

    /// A record failed and is to be sent again at `due`. False: it is to be given up, and is still under way.
    /// `asked`: the downstream chose the time. `blame`: it may be for what the record holds.
    #[must_use]
    pub(super) fn failed(&mut self, seq: u64, due: Instant, asked: bool, blame: bool) -> bool {
        let Some(Slot::Flying { charge, failures, passed }) = self.slots.get(&seq) else { return true };
        let (charge, passed) = (*charge, *passed);
        let failures = failures.saturating_add(u32::from(blame && !asked));
        if failures >= FAILURES_MAX && passed >= PASSED_MIN {
            return false;
        }
        self.land(seq);
        self.slots.insert(seq, Slot::Waiting { charge, failures, passed, due, asked });
        true
    }

    /// The next record to send again. `unwell`: the downstream takes nothing at present, so one is sent to see,
    /// due or not, but for those that had their turns; `fresh`: a new record could be sent instead.
    pub(super) fn next_again(&self, now: Instant, unwell: bool, fresh: bool) -> Option<Due> {
        let mut waiting =
            self.waiting().filter(
                |(_, slot_due, failures, _)| {
                    if unwell { *failures < ALONE_UNTIL || !fresh } else { *slot_due <= now }
                },
            );
        let chosen = if unwell { waiting.min_by_key(|(seq, due, _, _)| (*due, *seq)) } else { waiting.next() };
        chosen.map(|(seq, _, _, charge)| Due { seq, charge })
    }

    /// When the first waiting record is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting().map(|(_, due, _, _)| due).min()
    }

    /// Nothing that the downstream did not ask for is waited for beyond `due`.
    pub(super) fn hurry(&mut self, latest: Instant) {
        for slot in self.slots.values_mut() {
            if let Slot::Waiting { due, asked: false, .. } = slot {
                *due = latest.min(*due);
            }
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (u64, Instant, u32, usize)> + '_ {
        self.slots.iter().filter_map(|(seq, slot)| match slot {
            Slot::Waiting { due, failures, charge, .. } => Some((*seq, *due, *failures, *charge)),
            _ => None,
        })
    }

    fn land(&mut self, seq: u64) {
        if let Some(Slot::Flying { charge, .. }) = self.slots.get(&seq) {
            self.flying -= 1;
            self.flying_bytes -= charge;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cursor_is_the_end_of_the_unbroken_answered_run() {
        let mut window = Window::new(10);
        for seq in [11, 15, 16] {
            window.fly(seq, 100);
        }
        window.answered(15);
        assert_eq!((window.through(), window.flying(), window.flying_bytes()), (10, 2, 200));
        window.answered(11);
        assert_eq!(window.through(), 15);
        window.answered(20);
        assert_eq!(window.through(), 15);
        window.answered(16);
        assert_eq!((window.through(), window.flying_bytes()), (20, 0));
        assert!(window.is_empty());
    }

    #[test]
    fn an_outage_gives_nothing_up_and_ends_with_everything_due_at_once() {
        let now = Instant::now();
        let later = now + Duration::from_secs(30);
        let mut window = Window::new(0);
        for _ in 0..10_000 {
            window.fly(1, 1);
            assert!(window.failed(1, later, false, true));
        }
        window.fly(2, 1);
        assert!(window.failed(2, later, true, true));
        window.neighbours_passed(now);
        assert_eq!(window.next_again(now, false, false), Some(Due { seq: 1, charge: 1 }));
        window.fly(1, 1);
        assert!(window.failed(1, later, false, true));
        assert_eq!(window.next_again(now, false, false), None, "what the downstream asked for is kept");
        assert_eq!(window.next_due(), Some(later));
    }

    #[test]
    fn a_record_that_alone_is_refused_lets_others_pass_and_is_given_up_in_the_end() {
        let now = Instant::now();
        let mut window = Window::new(0);
        let mut seq = 1;
        let fail = |window: &mut Window| {
            window.fly(1, 1);
            window.failed(1, now, false, true)
        };
        for _ in 0..ALONE_UNTIL {
            assert!(fail(&mut window));
        }
        assert_eq!(window.next_again(now, true, true), None, "the one behind it has its turn");
        assert!(window.next_again(now, true, false).is_some(), "unless there is none");
        for _ in 0..PASSED_MIN {
            seq += 1;
            window.fly(seq, 1);
            window.answered(seq);
            window.neighbours_passed(now);
        }
        for _ in 1..FAILURES_MAX {
            assert!(fail(&mut window));
        }
        assert_eq!(window.through(), 0);
        assert!(!fail(&mut window));
        window.answered(1);
        assert_eq!((window.through(), window.flying_bytes()), (seq, 0));
    }

    #[test]
    fn a_connection_that_does_not_stand_is_no_fault_of_a_record() {
        let now = Instant::now();
        let mut window = Window::new(0);
        for _ in 0..1000 {
            window.fly(1, 1);
            assert!(window.failed(1, now, false, false));
        }
        assert_eq!(window.next_again(now, true, true), Some(Due { seq: 1, charge: 1 }), "it is what is tried");
    }

    #[test]
    fn throttling_is_never_held_against_a_record() {
        let now = Instant::now();
        let mut window = Window::new(0);
        for _ in 0..1000 {
            window.fly(1, 1);
            assert!(window.failed(1, now, true, true));
            window.neighbours_passed(now);
        }
    }

    proptest! {
        /// Whatever the order of answers: the cursor never passes an unanswered record, and ends at the last.
        #[test]
        fn the_cursor_never_passes_an_unanswered_record(order in Just((1u64..=40).collect::<Vec<_>>()).prop_shuffle()) {
            let mut window = Window::new(0);
            (1..=40).for_each(|seq| window.fly(seq, 3));
            let mut open: std::collections::BTreeSet<u64> = (1..=40).collect();
            for seq in order {
                window.answered(seq);
                open.remove(&seq);
                prop_assert_eq!(window.through(), open.first().map_or(40, |first| first - 1));
                prop_assert_eq!(window.flying(), open.len());
            }
            prop_assert_eq!(window.flying_bytes(), 0);
        }
    }
}
