//! Digits in groups, as numbers are printed, and their checksums.

use std::ops::Range;

/// One unbroken run of ASCII digits.
pub type Group = Range<usize>;

/// Every run of digits of a text.
pub fn groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte.is_ascii_digit(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                groups.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        groups.push(from..text.len());
    }
    groups
}

/// The digits of a text.
pub fn of(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// The Luhn check. Source: ISO/IEC 7812-1, annex B.
pub fn luhn(digits: &str) -> bool {
    let mut sum = 0;
    for (place, digit) in digits.bytes().rev().map(|byte| u32::from(byte.wrapping_sub(b'0'))).enumerate() {
        let doubled = digit * 2;
        sum += match place % 2 {
            0 => digit,
            _ if doubled > 9 => doubled - 9,
            _ => doubled,
        };
    }
    !digits.is_empty() && sum % 10 == 0
}
