//! How often the properties are tried: seldom at a desk, where the tests should take seconds, and as often as they say
//! when `IRIS_THOROUGH` is set, as `make test` does.

/// So many random cases of the `thorough` that a property asks for.
pub fn cases(thorough: u32) -> u32 {
    thorough.div_ceil(u32::try_from(stride()).unwrap_or(1))
}

/// Every how many of a long list of cases one is tried.
#[expect(clippy::disallowed_methods, reason = "the one setting of the tests")]
pub fn stride() -> usize {
    if std::env::var_os("IRIS_THOROUGH").is_some() { 1 } else { 4 }
}
