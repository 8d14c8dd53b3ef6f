//! Finding bytes of a class, sixteen at a time.

/// Bytes that are tested together: a compare of that many is one instruction.
const BLOCK: usize = 16;

/// Where the first byte of a class stands. All bytes of a block are tested before any is looked at, so `is` must be
/// made of comparisons.
pub fn position(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let first = |part: &[u8], from: usize| part.iter().position(|byte| is(*byte)).map(|inside| from + inside);
    for (at, block) in blocks.iter().enumerate() {
        if block.iter().fold(false, |any, byte| any | is(*byte)) {
            return first(block, at * BLOCK);
        }
    }
    first(rest, blocks.len() * BLOCK)
}

/// Where a letter or digit stands first between two blanks: the byte of it.
pub fn single(bytes: &[u8], from: usize) -> Option<usize> {
    let part = |ahead: usize| bytes.get(from + ahead..).unwrap_or_default();
    let (before, inner, after) = (part(0), part(1), part(2));
    let is = |before: u8, inner: u8, after: u8| {
        let spelt = inner.wrapping_sub(b'0') < 10 || (inner | 0x20).wrapping_sub(b'a') < 26;
        (before == b' ') & (after == b' ') & spelt
    };
    let blocks =
        before.as_chunks::<BLOCK>().0.iter().zip(inner.as_chunks::<BLOCK>().0).zip(after.as_chunks::<BLOCK>().0);
    let mut passed = 0;
    for ((before, inner), after) in blocks {
        let any = before.iter().zip(inner).zip(after).fold(false, |any, ((a, b), c)| any | is(*a, *b, *c));
        if any {
            break;
        }
        passed += BLOCK;
    }
    let rest = bytes.get(from + passed..).unwrap_or_default();
    let inside = rest.windows(3).position(|three| matches!(three, [a, b, c] if is(*a, *b, *c)))?;
    Some(from + passed + inside + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{position, single};

    proptest! {
        #[test]
        fn blocks_hide_nothing(text in "[ a1.\\n]{0,80}", from in 0_usize..90) {
            let bytes = text.as_bytes();
            prop_assert_eq!(position(bytes, |byte| byte == b'1'), text.find('1'));
            let one_by_one = (from + 1..bytes.len().saturating_sub(1)).find(|at| {
                bytes[at - 1] == b' ' && bytes[*at].is_ascii_alphanumeric() && bytes[at + 1] == b' '
            });
            prop_assert_eq!(single(bytes, from), one_by_one);
        }
    }
}
