//! What every match of a pattern begins with, byte by byte: a look that spares most places the search.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of a match that are looked at.
const BYTES_MAX: usize = 24;

/// A set of bytes, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Set([u64; 4]);

impl Set {
    fn add(&mut self, from: u8, to: u8) {
        for byte in from..=to {
            if let Some(part) = self.0.get_mut(usize::from(byte >> 6)) {
                *part |= 1 << (byte & 63);
            }
        }
    }

    fn and(self, other: Self) -> Self {
        let mut all = self;
        all.0.iter_mut().zip(other.0).for_each(|(part, other)| *part |= other);
        all
    }

    fn holds(self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|part| part >> (byte & 63) & 1 == 1)
    }
}

/// The bytes that may stand at each of the first places of a match; no match is shorter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline {
    places: Vec<Set>,
    /// Every match is exactly so long.
    whole: bool,
}

impl Outline {
    /// The outline of a pattern; one that cannot be read fits everything.
    pub fn of(pattern: &str) -> Self {
        regex_syntax::parse(pattern).map(|syntax| Self::of_part(&syntax)).unwrap_or_default()
    }

    /// Whether a match may begin with the first of these bytes.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.places.len() && self.places.iter().zip(bytes).all(|(set, byte)| set.holds(*byte))
    }

    fn of_part(part: &Hir) -> Self {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Self { places: Vec::new(), whole: true },
            HirKind::Literal(literal) => {
                let one = |byte: &u8| {
                    let mut set = Set::default();
                    set.add(*byte, *byte);
                    set
                };
                Self { places: literal.0.iter().map(one).collect(), whole: true }.cut()
            }
            HirKind::Class(class) => Self::of_class(class),
            HirKind::Capture(capture) => Self::of_part(&capture.sub),
            HirKind::Repetition(repetition) => {
                let one = Self::of_part(&repetition.sub);
                let mut all = Self { places: Vec::new(), whole: true };
                for _ in 0..repetition.min.min(u32::try_from(BYTES_MAX).unwrap_or(u32::MAX)) {
                    all = all.then(&one);
                }
                let exact = repetition.max == Some(repetition.min) && all.places.len() < BYTES_MAX;
                Self { whole: all.whole && exact, ..all }
            }
            HirKind::Concat(parts) => {
                let whole = Self { places: Vec::new(), whole: true };
                parts.iter().fold(whole, |all, part| if all.whole { all.then(&Self::of_part(part)) } else { all })
            }
            HirKind::Alternation(parts) => parts.iter().map(Self::of_part).reduce(Self::or).unwrap_or_default(),
        }
    }

    fn of_class(class: &Class) -> Self {
        let mut set = Set::default();
        let mut whole = true;
        match class {
            Class::Bytes(class) => class.iter().for_each(|range| set.add(range.start(), range.end())),
            Class::Unicode(class) => {
                for range in class.iter() {
                    let last = |c: char| u8::try_from(c).ok().filter(u8::is_ascii);
                    if let Some(from) = last(range.start()) {
                        set.add(from, last(range.end()).unwrap_or(0x7F));
                    }
                    if last(range.end()).is_none() {
                        // More bytes follow the first.
                        set.add(0x80, 0xFF);
                        whole = false;
                    }
                }
            }
        }
        Self { places: vec![set], whole }
    }

    /// What a match of this and one of the other behind it begin with.
    fn then(mut self, other: &Self) -> Self {
        if self.whole {
            self.places.extend(&other.places);
            self.whole = other.whole;
        }
        self.cut()
    }

    fn or(self, other: Self) -> Self {
        let whole = self.whole && other.whole && self.places.len() == other.places.len();
        let places = self.places.into_iter().zip(other.places).map(|(one, other)| one.and(other)).collect();
        Self { places, whole }
    }

    fn cut(mut self) -> Self {
        if self.places.len() > BYTES_MAX {
            self.places.truncate(BYTES_MAX);
            self.whole = false;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;
    use regex_automata::{Anchored, Input};

    use super::super::sample::expand;
    use super::super::secret::TABLE;
    use super::Outline;

    #[test]
    fn an_outline_fits_what_matches() {
        let pattern = "(?i)(?:ab|[x-z]{2}c?|é+)[0-9]{2,3}-";
        let (outline, regex) = (Outline::of(pattern), Regex::new(pattern).unwrap());
        for (text, want) in
            [("AB12-", true), ("xy123-", true), ("xyc12-", true), ("é12-", true), ("éé12-", true), ("b12-", false)]
        {
            let matches = regex.is_match(Input::new(text).anchored(Anchored::Yes));
            assert_eq!((matches, outline.fits(text.as_bytes())), (want, want), "{text}");
        }
        assert!(!Outline::of("sk-[A-Za-z0-9]{32,64}").fits(b"sk-sk-sk-sk-sk-sk-sk-sk-sk-sk-sk-sk-sk-"));
        assert!(Outline::of("(").fits(b""));
    }

    /// Of every row: where an example matches, its outline fits.
    #[test]
    fn no_example_is_passed_over() {
        for entry in &TABLE.entries {
            let outline = Outline::of(&entry.regex);
            for example in &entry.examples {
                let text = expand(example);
                let found = entry.pattern().unwrap().find(&text).unwrap();
                assert!(outline.fits(&text.as_bytes()[found.start()..]), "{}", entry.id);
            }
        }
    }
}
