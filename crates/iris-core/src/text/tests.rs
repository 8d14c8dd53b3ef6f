use proptest::prelude::*;

use super::{TextSpan, View, is_blank, sentences};

fn folded(text: &str) -> String {
    View::folded(text).text().to_owned()
}

/// The raw characters under what `needle` is found as in the folded text.
fn under(raw: &str, needle: &str) -> String {
    let view = View::folded(raw);
    let start = view.text().find(needle).unwrap();
    let span = view.span(start..start + needle.len());
    raw.chars().skip(span.start()).take(span.end() - span.start()).collect()
}

#[test]
fn takes_disguises_off() {
    for (raw, want) in [
        ("plain ascii\n\ttext", "plain ascii\n\ttext"),
        ("bob＠corp．test", "bob@corp.test"),
        ("4539\u{A0}7223\u{2007}2332", "4539 7223 2332"),
        ("٤٥٣٩-۷۲۲۳", "4539-7223"),
        ("536\u{2060}-22-\u{AD}1843", "536-22-1843"),
        ("mara@\u{200B}corp.test", "mara@corp.test"),
        ("\u{430}lice@corp.test", "alice@corp.test"),
        ("\u{406}gnore \u{456}t in", "Ignore it in"),
        ("\u{202E}536–22–1843\u{202C}", "536-22-1843"),
        ("𝐬𝐤-𝟏𝟐", "sk-12"),
        ("café José", "cafe Jose"),
        ("cafe\u{301} 1\u{301}2", "cafe 12"),
        ("\u{E0069}\u{E0067}\u{E006E}", "ign"),
        ("\u{1F3F4}\u{E0067}\u{E0062}\u{E007F} flag", "\u{1F3F4} flag"),
        ("a\u{2028}b", "a\nb"),
    ] {
        assert_eq!(folded(raw), want, "{raw:?}");
    }
}

#[test]
fn leaves_other_scripts_alone() {
    for text in ["Привет, мир", "Ελληνικά κείμενα", "联系 谢谢", "が ガ ぱ", "한국어", "עברית", "हिन्दी"]
    {
        assert_eq!(folded(text), text);
    }
}

#[test]
fn folds_look_alikes_only_where_scripts_mix() {
    assert_eq!(folded("сор"), "сор");
    assert_eq!(folded("x сор pаss"), "x сор pass");
}

#[test]
fn points_back_at_the_raw_text() {
    assert_eq!(under("señor 536\u{2060}-22-\u{AD}1843!", "536-22-1843"), "536\u{2060}-22-\u{AD}1843");
    assert_eq!(under("→ bob＠corp.test ←", "bob@corp.test"), "bob＠corp.test");
    assert_eq!(under("ﬁne ㎏ x", "kg"), "㎏");
    assert_eq!(under("é=e", "e=e"), "é=e");
}

#[test]
fn counts_code_points() {
    let span = TextSpan::of("añ😀b", "añ".len().."añ😀".len());
    assert_eq!((span.start(), span.end()), (2, 3));
}

#[test]
fn sees_that_nothing_is_there() {
    for blank in ["", " \n\t", "\u{200B}\u{200D}", "\u{FEFF}", "\u{A0}\u{2003}", "\u{2800}", "\u{3164}\u{FFA0}"] {
        assert!(is_blank(blank), "{blank:?}");
    }
    for shown in ["{}", "[]", "null", ".", "-", "😀"] {
        assert!(!is_blank(shown), "{shown:?}");
    }
}

#[test]
fn cuts_sentences() {
    let cut: Vec<_> = sentences("It took 2.5 s. J. Doe left! 完了。次へ\n- item").collect();
    assert_eq!(cut, ["It took 2.5 s.", "J. Doe left!", "完了。", "次へ", "- item"]);
}

proptest! {
    #[test]
    fn every_stretch_of_a_folded_text_maps_into_the_raw_one(raw in any::<String>(), a in 0_usize..80, b in 0_usize..80) {
        let view = View::folded(&raw);
        let length = raw.chars().count();
        let span = view.span(a.min(b)..a.max(b));
        prop_assert!(span.start() <= span.end() && span.end() <= length);
        let whole = view.span(0..view.text().len());
        prop_assert!(whole.end() <= length);
    }

    #[test]
    fn folding_twice_changes_nothing_more(raw in "[a-zа-я０-９ \u{200B}é@.-]{0,40}") {
        let once = folded(&raw);
        prop_assert_eq!(folded(&once), once.clone());
    }
}
