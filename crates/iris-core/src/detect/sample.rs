//! Made-up secrets for tests, so that nothing in this repository looks like a live one.

/// Replaces every `{class:length}` by characters of that class drawn by a fixed generator: `alnum`, `alpha`, `lower`,
/// `upper`, `hex`, `digit`, `b64`, `url`.
pub fn expand(template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    let mut state = xxhash_rust::xxh3::xxh3_64(template.as_bytes()) | 1;
    while let Some((head, tail)) = rest.split_once('{') {
        out.push_str(head);
        let slot = tail.split_once('}').and_then(|(slot, after)| {
            let (class, length) = slot.split_once(':')?;
            Some((alphabet(class)?, length.parse::<usize>().ok()?, after))
        });
        let Some((alphabet, length, after)) = slot else {
            out.push('{');
            rest = tail;
            continue;
        };
        for _ in 0..length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            out.push(char::from(alphabet[(state >> 24) as usize % alphabet.len()]));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn alphabet(class: &str) -> Option<&'static [u8]> {
    Some(match class {
        "alnum" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "alpha" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "lower" => b"abcdefghijklmnopqrstuvwxyz0123456789",
        "upper" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "hex" => b"0123456789abcdef",
        "digit" => b"0123456789",
        "b64" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "url" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        _ => return None,
    })
}
