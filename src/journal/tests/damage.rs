//! Flipped bits, cut files, lost files and frames from the future: each costs what it touches and is reported.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::forgetful::ForgetfulDisk;
use super::*;
use crate::journal::frame;
use crate::journal::lane::Segment;

/// A closed journal with two segments of traces.
struct Fixture {
    disk: Arc<ForgetfulDisk>,
    segments: Vec<(PathBuf, Vec<u8>)>,
    cursors: (PathBuf, Vec<u8>),
    /// Seq and body of each record, by segment.
    records: Vec<Vec<(u64, Bytes)>>,
}

const SIZES: [usize; 6] = [200, 1, 5000, 0, 90_000, 17];

impl Fixture {
    async fn new() -> Self {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), true);
        let mut records = Vec::new();
        for segment in 0..2u8 {
            let mut sent = Vec::new();
            for (index, size) in SIZES.iter().enumerate() {
                let body = Bytes::from(vec![segment * 16 + index as u8 + 1; *size]);
                sent.push((journal.append(Lane::Traces, record(body.clone())).await.unwrap(), body));
            }
            records.push(sent);
            journal.rotate(Lane::Traces).await;
        }
        journal.close().await;
        let read = |path: PathBuf| (path.clone(), disk.content(&path));
        let segments = disk.files("journal/traces/").into_iter().map(read).collect();
        let cursors = read(disk.files("journal/cursors").remove(0));
        Self { disk, segments, cursors, records }
    }

    /// Where each record's header and body stand in a segment.
    fn places(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut at = usize::try_from(frame::OPENING_BYTES).unwrap();
        let header = frame::HEADER_MIN + "team-a".len();
        let place = |size: &usize| {
            let start = at;
            at = (start + header + size).next_multiple_of(8);
            (start..start + header, start + header..start + header + size)
        };
        SIZES.iter().map(place).collect()
    }

    /// Puts the files back as they were, with one segment changed.
    fn change(&self, segment: usize, change: impl FnOnce(&mut Vec<u8>)) {
        for (path, content) in self.segments.iter().chain([&self.cursors]) {
            self.disk.overwrite(path, content);
        }
        let mut content = self.segments[segment].1.clone();
        change(&mut content);
        self.disk.overwrite(&self.segments[segment].0, &content);
    }

    /// Everything is there but these, and that is said.
    async fn expect_lost(&self, segment: usize, lost: &[usize], reported: bool, what: &str) {
        let (journal, recovered) = open(&self.disk, &Config::default(), true);
        let found: Vec<(u64, Bytes)> =
            entries(&journal, Lane::Traces).into_iter().map(|entry| (entry.seq, entry.record.body)).collect();
        let mut expected = self.records.clone();
        let mut index = 0;
        expected[segment].retain(|_| {
            index += 1;
            !lost.contains(&(index - 1))
        });
        assert_eq!(found, expected.concat(), "{what}");
        assert_eq!(status(&journal, Lane::Traces).damaged > 0, reported, "{what}: {recovered:?}");
        assert!(recovered.next_seq > self.records[1][5].0, "{what}");
        // So that nothing is written any more when the next change is made.
        journal.close().await;
    }
}

#[test]
fn a_flipped_bit_costs_one_record_wherever_it_is() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        let mut tried = 0;
        for segment in 0..2 {
            for (index, (header, body)) in fixture.places().into_iter().enumerate() {
                let in_body = [body.start, body.start + body.len() / 2, body.end.saturating_sub(1)];
                let body_places = in_body.into_iter().filter(|at| body.contains(at));
                for at in header.chain(body_places) {
                    fixture.change(segment, |content| content[at] ^= 1 << (at % 8));
                    fixture.expect_lost(segment, &[index], true, &format!("byte {at} of segment {segment}")).await;
                    tried += 1;
                }
            }
        }
        assert!(tried > 700);
    });
}

#[test]
fn a_damaged_opening_costs_nothing_and_padding_does_not_matter() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        for at in 0..frame::HEADER_MIN + 8 {
            fixture.change(0, |content| content[at] ^= 0x10);
            fixture.expect_lost(0, &[], true, &format!("byte {at}")).await;
        }
        let padding = fixture.places()[1].1.end;
        fixture.change(0, |content| content[padding] ^= 1);
        fixture.expect_lost(0, &[], false, "padding").await;
    });
}

#[test]
fn zeroed_and_scrambled_sectors_cost_the_records_they_touch() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        for segment in 0..2 {
            for sector in 0..fixture.segments[segment].1.len() / 512 {
                let hit = sector * 512..(sector + 1) * 512;
                let places = fixture.places();
                let touched =
                    |(header, body): &(Range<usize>, Range<usize>)| header.start < hit.end && hit.start < body.end;
                let lost: Vec<usize> = (0..places.len()).filter(|index| touched(&places[*index])).collect();
                if sector % 2 == 0 || lost.len() > 1 {
                    fixture.change(segment, |content| content[hit.clone()].fill(0));
                } else {
                    fixture.change(segment, |content| content[hit.clone()].iter_mut().for_each(|byte| *byte ^= 0xa5));
                }
                fixture.expect_lost(segment, &lost, true, &format!("sector {sector} of segment {segment}")).await;
            }
        }
    });
}

#[test]
fn a_cut_file_loses_what_was_cut_off_and_nothing_else() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        for segment in 0..2 {
            let places = fixture.places();
            let mut cuts: Vec<usize> = vec![0, 1, 60];
            cuts.extend(places.iter().flat_map(|(header, _)| [header.start, header.start + 30, header.end]));
            cuts.extend(places.iter().map(|(_, body)| body.start + body.len() / 2));
            for cut in cuts {
                let lost: Vec<usize> = (0..places.len())
                    .filter(|index| places[*index].1.end > cut || places[*index].0.end > cut)
                    .collect();
                fixture.change(segment, |content| content.truncate(cut));
                fixture.expect_lost(segment, &lost, true, &format!("cut at {cut} of segment {segment}")).await;
            }
        }
    });
}

#[test]
fn a_lost_file_is_noticed() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        fixture.disk.lose(&fixture.segments[1].0);
        let (journal, recovered) = open(&fixture.disk, &Config::default(), true);
        assert_eq!(bodies(&journal, Lane::Traces).len(), 6);
        let through = fixture.records[1][5].0;
        assert_eq!(recovered.damage[0].kind, DamageKind::MissingTail { through });
        assert!(recovered.next_seq > through);
    });
}

#[test]
fn records_after_a_torn_write_are_found_and_the_next_start_goes_on() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        let (header, body) = fixture.places()[5].clone();
        fixture.change(1, |content| content[body.start..].fill(0));
        let (journal, recovered) = open(&fixture.disk, &Config::default(), true);
        let kinds: Vec<DamageKind> = recovered.damage.iter().map(|damage| damage.kind).collect();
        assert_eq!(kinds, [DamageKind::TornTail]);
        assert_eq!(recovered.damage[0].offset, header.start as u64);
        journal.append(Lane::Traces, record("after")).await.unwrap();
        journal.close().await;
        let (journal, _) = open(&fixture.disk, &Config::default(), true);
        assert_eq!(bodies(&journal, Lane::Traces).len(), 12);
        assert_eq!(bodies(&journal, Lane::Traces).last().unwrap(), "after");
    });
}

#[test]
fn a_frame_from_the_future_is_stepped_over_and_kept() {
    runtime().block_on(async {
        let fixture = Fixture::new().await;
        for (at, value) in [(4, 2u8), (5, 77), (6, 9), (7, 9)] {
            for (segment, index) in [(0, 2), (1, 2), (1, 5)] {
                let (header, body) = fixture.places()[index].clone();
                fixture.change(segment, |content| {
                    content[header.start + at] = value;
                    let sum = header.end - 4;
                    let checksum = crc32fast::hash(&content[header.start..sum]);
                    content[sum..header.end].copy_from_slice(&checksum.to_le_bytes());
                });
                let path = &fixture.segments[segment].0;
                let before = fixture.disk.content(path);
                let (journal, recovered) = open(&fixture.disk, &Config::default(), true);
                assert_eq!((recovered.unknown, recovered.damaged), (1, 0));
                assert_eq!(bodies(&journal, Lane::Traces).len(), 11);
                journal.close().await;
                assert_eq!(fixture.disk.content(path)[..body.end], before[..body.end], "it is still there");
            }
        }
    });
}

#[test]
fn the_likeness_of_a_record_inside_a_body_is_never_taken_for_one() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), true);
        // What a sender could make: right checksums and a seq that fits, but not the key.
        let forged = record("forged");
        let mut body = vec![b'x'; 2];
        let seq = journal.append(Lane::Traces, record("first")).await.unwrap() + 1;
        for shift in 0..8 {
            body.resize(body.len() + 1 + shift, b'x');
            frame::push_header(&mut body, seq, &forged, 1234, crc32fast::hash(&forged.body));
            body.extend_from_slice(&forged.body);
        }
        journal.append(Lane::Traces, record(body)).await.unwrap();
        journal.append(Lane::Traces, record("third")).await.unwrap();
        journal.close().await;
        let path = disk.files("journal/traces/").remove(0);
        let mut content = disk.content(&path);
        let second = usize::try_from(frame::OPENING_BYTES + frame::stride("team-a", 5)).unwrap();
        content[second] ^= 1;
        disk.overwrite(&path, &content);
        let (journal, recovered) = open(&disk, &Config::default(), true);
        assert_eq!(bodies(&journal, Lane::Traces), ["first", "third"]);
        assert_eq!(recovered.damaged, 1);
    });
}

#[test]
fn a_lost_key_or_cursors_file_loses_no_record() {
    runtime().block_on(async {
        for name in ["seed", "cursors"] {
            let fixture = Fixture::new().await;
            let path = fixture.disk.files(&format!("journal/{name}")).remove(0);
            let mut content = fixture.disk.content(&path);
            content[3] ^= 1;
            fixture.disk.overwrite(&path, &content);
            fixture.expect_lost(0, &[], false, name).await;
            let (_, recovered) = open(&fixture.disk, &Config::default(), true);
            assert!(!recovered.key_renewed, "only the first start makes a new key");
        }
    });
}

#[test]
fn other_files_in_a_lane_are_left_alone() {
    for name in ["0000000000000001.seg.old", "1.seg", "000000000000000G.seg", "notes.txt", "00000000000000AB.seg"] {
        assert_eq!(Segment::parse_name(name), None, "{name}");
    }
    assert_eq!(Segment::parse_name("00000000000000ab.seg"), Some(0xab));
}
