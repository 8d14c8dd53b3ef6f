//! Check digits of numbers that states and banks hand out. Each takes the number as printed.

use super::digits::luhn;

/// The digits of a number as printed.
fn digits(number: &str) -> Vec<u32> {
    number.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// The sum of each digit times its weight.
fn weighed(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

fn at(digits: &[u32], place: usize) -> u32 {
    digits.get(place).copied().unwrap_or(0)
}

/// Whether all digits are one, which is how forms are filled in.
fn is_one_digit(digits: &[u32]) -> bool {
    digits.windows(2).all(|pair| matches!(pair, [a, b] if a == b))
}

/// Any number: the label alone says what it is.
pub(super) fn any(_: &str) -> bool {
    true
}

/// Luhn over all digits: Canada, South Africa, Israel.
pub(super) fn is_luhn(number: &str) -> bool {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    luhn(&digits) && digits.bytes().any(|byte| byte != b'0')
}

/// Sweden: Luhn over the last ten digits.
pub(super) fn is_swedish(number: &str) -> bool {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.get(digits.len().saturating_sub(10)..).is_some_and(|last| last.len() == 10 && luhn(last))
}

/// United States health providers: Luhn with 80840 before it.
pub(super) fn is_provider(number: &str) -> bool {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    luhn(&format!("80840{digits}"))
}

/// United Kingdom health service: weights 10 to 2, modulo 11.
pub(super) fn is_nhs(number: &str) -> bool {
    let d = digits(number);
    let check = (11 - weighed(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    d.len() == 10 && !is_one_digit(&d) && check == at(&d, 9)
}

/// United States bank routing: weights 3, 7, 1.
pub(super) fn is_routing(number: &str) -> bool {
    let d = digits(number);
    d.len() == 9 && !is_one_digit(&d) && weighed(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
}

/// United States drug enforcement: twice the even places and the odd ones.
pub(super) fn is_dea(number: &str) -> bool {
    let d = digits(number);
    d.len() == 7 && weighed(&d, &[1, 2, 1, 2, 1, 2]) % 10 == at(&d, 6)
}

/// Spain: the letter is the number modulo 23.
pub(super) fn is_spanish(number: &str) -> bool {
    let upper = number.to_ascii_uppercase();
    let plain: String = upper.chars().filter(char::is_ascii_alphanumeric).collect();
    let lead = match plain.bytes().next() {
        Some(b'X') => "0",
        Some(b'Y') => "1",
        Some(b'Z') => "2",
        _ => "",
    };
    let body = plain.trim_start_matches(['X', 'Y', 'Z']);
    let Some((figures, letter)) = body.split_at_checked(body.len().saturating_sub(1)) else { return false };
    let value: Option<usize> = format!("{lead}{figures}").parse().ok();
    value.is_some_and(|value| "TRWAGMYFPDXBNJZSQVHLCKE".get(value % 23..=value % 23) == Some(letter))
}

/// Brazil: two check digits modulo 11.
pub(super) fn is_brazilian(number: &str) -> bool {
    let d = digits(number);
    let check = |count: u32| {
        let sum: u32 = d.iter().zip((2..=count + 1).rev()).map(|(digit, weight)| digit * weight).sum();
        sum * 10 % 11 % 10
    };
    d.len() == 11 && !is_one_digit(&d) && check(9) == at(&d, 9) && check(10) == at(&d, 10)
}

/// India: the Verhoeff check.
pub(super) fn is_verhoeff(number: &str) -> bool {
    const TIMES: [&str; 10] = [
        "0123456789",
        "1234067895",
        "2340178956",
        "3401289567",
        "4012395678",
        "5987604321",
        "6598710432",
        "7659821043",
        "8765932104",
        "9876543210",
    ];
    const TURNS: [&str; 8] = [
        "0123456789",
        "1576283094",
        "5803796142",
        "8916043527",
        "9453126870",
        "4286573901",
        "2793806415",
        "7046913258",
    ];
    let pick = |row: &str, place: u32| row.as_bytes().get(place as usize).map_or(0, |byte| u32::from(byte - b'0'));
    let d = digits(number);
    let check = d.iter().rev().enumerate().fold(0_u32, |check, (place, digit)| {
        let turned = TURNS.get(place % 8).map_or(0, |row| pick(row, *digit));
        TIMES.get(check as usize).map_or(0, |row| pick(row, turned))
    });
    d.len() == 12 && check == 0 && at(&d, 0) >= 2
}

/// Poland: weights 1, 3, 7, 9.
pub(super) fn is_pesel(number: &str) -> bool {
    let d = digits(number);
    let check = (10 - weighed(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10) % 10;
    d.len() == 11 && !is_one_digit(&d) && check == at(&d, 10)
}

/// The Netherlands: the test of eleven, the last digit taken away.
pub(super) fn is_dutch(number: &str) -> bool {
    let d = digits(number);
    let sum = weighed(&d, &[9, 8, 7, 6, 5, 4, 3, 2]);
    d.len() == 9 && !is_one_digit(&d) && sum >= at(&d, 8) && (sum - at(&d, 8)).is_multiple_of(11)
}

/// Finland: the number without its mark, modulo 31, picks the last character.
pub(super) fn is_finnish(number: &str) -> bool {
    let d = digits(number.get(..number.len().saturating_sub(1)).unwrap_or(""));
    let value = d.iter().fold(0, |value, digit| value * 10 + digit) as usize % 31;
    let last = number.get(number.len().saturating_sub(1)..).map(str::to_ascii_uppercase);
    d.len() == 9 && "0123456789ABCDEFHJKLMNPRSTUVWXY".get(value..=value) == last.as_deref()
}

/// Germany, tax: ISO 7064 modulo 11, 10.
pub(super) fn is_german_tax(number: &str) -> bool {
    let d = digits(number);
    let product = d.iter().take(10).fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    d.len() == 11 && at(&d, 0) != 0 && (11 - product) % 10 == at(&d, 10)
}

/// France: 97 less the number modulo 97; Corsica's letters count as 19 and 18.
pub(super) fn is_french(number: &str) -> bool {
    let plain: String = number.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_uppercase().replacen("2A", "19", 1).replacen("2B", "18", 1);
    let (body, key) = plain.split_at_checked(13).unwrap_or((&plain, ""));
    match (body.parse::<u64>(), key.parse::<u64>()) {
        (Ok(body), Ok(key)) => plain.len() == 15 && 97 - body % 97 == key,
        _ => false,
    }
}

/// Belgium: 97 less the first nine digits modulo 97, with a 2 before them for those born since 2000.
pub(super) fn is_belgian(number: &str) -> bool {
    let d = digits(number);
    let body = d.iter().take(9).fold(0_u64, |value, digit| value * 10 + u64::from(*digit));
    let key = u64::from(at(&d, 9) * 10 + at(&d, 10));
    d.len() == 11 && (97 - body % 97 == key || 97 - (2_000_000_000 + body) % 97 == key)
}

/// Switzerland, as article numbers: weights 1 and 3.
pub(super) fn is_swiss(number: &str) -> bool {
    let d = digits(number);
    let sum: u32 = d.iter().enumerate().map(|(place, digit)| if place % 2 == 0 { *digit } else { digit * 3 }).sum();
    d.len() == 13 && sum.is_multiple_of(10)
}

/// China: ISO 7064 modulo 11, 2, over eighteen places, with a date in them.
pub(super) fn is_chinese(number: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let d = digits(number.get(..17).unwrap_or(""));
    let last = number.get(17..).map(str::to_ascii_uppercase);
    let place = (weighed(&d, &WEIGHTS) % 11) as usize;
    let (month, day) = (at(&d, 10) * 10 + at(&d, 11), at(&d, 12) * 10 + at(&d, 13));
    d.len() == 17
        && matches!(at(&d, 6), 1 | 2)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && "10X98765432".get(place..=place) == last.as_deref()
}

/// Korea: weights 2 to 9 and again, modulo 11, with a date in front.
pub(super) fn is_korean(number: &str) -> bool {
    let d = digits(number);
    let (month, day) = (at(&d, 2) * 10 + at(&d, 3), at(&d, 4) * 10 + at(&d, 5));
    let check = (11 - weighed(&d, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11) % 10;
    d.len() == 13 && (1..=12).contains(&month) && (1..=31).contains(&day) && check == at(&d, 12)
}

/// Singapore: weights 2, 7, 6, 5, 4, 3, 2 pick the letter, by series.
pub(super) fn is_singaporean(number: &str) -> bool {
    let upper = number.to_ascii_uppercase();
    let d = digits(&upper);
    let sum = weighed(&d, &[2, 7, 6, 5, 4, 3, 2]) + if upper.starts_with(['T', 'G']) { 4 } else { 0 };
    let letters = if upper.starts_with(['S', 'T']) { "JZIHGFEDCBA" } else { "XWUTRQPNMLK" };
    let place = (sum % 11) as usize;
    d.len() == 7 && letters.get(place..=place) == upper.get(8..)
}

/// Turkey: the tenth digit from the odd and even places, the eleventh from the sum.
pub(super) fn is_turkish(number: &str) -> bool {
    let d = digits(number);
    let odd: u32 = d.iter().take(9).step_by(2).sum();
    let even: u32 = d.iter().take(8).skip(1).step_by(2).sum();
    let sum: u32 = d.iter().take(10).sum();
    d.len() == 11 && at(&d, 0) != 0 && (odd * 7 + 100 - even) % 10 == at(&d, 9) && sum % 10 == at(&d, 10)
}

/// Australia, tax: weights 1, 4, 3, 7, 5, 8, 6, 9, 10, modulo 11.
pub(super) fn is_australian_tax(number: &str) -> bool {
    let d = digits(number);
    d.len() == 9 && !is_one_digit(&d) && weighed(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11)
}

/// Australia, health: weights 1, 3, 7, 9, modulo 10, in the ninth place.
pub(super) fn is_medicare(number: &str) -> bool {
    let d = digits(number);
    matches!(d.len(), 10 | 11)
        && (2..=6).contains(&at(&d, 0))
        && weighed(&d, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == at(&d, 8)
}

/// Italy: a letter from the fifteen characters before it.
pub(super) fn is_italian(number: &str) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let upper = number.to_ascii_uppercase();
    let value = |byte: u8| u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte.saturating_sub(b'A') });
    let sum: u32 = upper
        .bytes()
        .take(15)
        .enumerate()
        .map(|(place, byte)| {
            let value = value(byte);
            if place % 2 == 0 { ODD.get(value as usize).copied().unwrap_or(0) } else { value }
        })
        .sum();
    upper.len() == 16 && upper.bytes().last().is_some_and(|last| value(last) == sum % 26 && last.is_ascii_uppercase())
}

/// Vehicles: letters as numbers, weights, modulo 11, in the ninth place.
pub(super) fn is_vehicle(number: &str) -> bool {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    let upper = number.to_ascii_uppercase();
    let value = |c: char| match c {
        '0'..='9' => c.to_digit(10).unwrap_or(0),
        'A'..='H' => c as u32 - 'A' as u32 + 1,
        'J'..='R' => c as u32 - 'J' as u32 + 1,
        'S'..='Z' => c as u32 - 'S' as u32 + 2,
        _ => 0,
    };
    let sum: u32 = upper.chars().zip(WEIGHTS).map(|(c, weight)| value(c) * weight).sum();
    let want = if sum % 11 == 10 { Some('X') } else { char::from_digit(sum % 11, 10) };
    upper.len() == 17 && upper.chars().nth(8) == want
}
