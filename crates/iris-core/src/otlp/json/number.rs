//! Numbers of OTLP/JSON: 64-bit integers exact whether they come as numbers or as strings, doubles by name.

/// An integer written in decimal, exactly: `12`, `-3`, `12.0` and `1.2e1` are integers, `12.5` is not. None
/// also beyond 38 digits, which no field holds.
pub(super) fn integer(text: &str) -> Option<i128> {
    if let Ok(integer) = text.parse::<i64>() {
        return (!text.starts_with('+')).then_some(integer.into());
    }
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let mut value = 0i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if value != 0 {
        for _ in 0..shift.max(0) {
            value = value.checked_mul(10)?;
        }
        for _ in shift..0 {
            if value % 10 != 0 {
                return None;
            }
            value /= 10;
        }
    }
    Some(if is_negative { -value } else { value })
}

/// A double by its decimal or its name; none when it is too large to be one.
pub(super) fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}
