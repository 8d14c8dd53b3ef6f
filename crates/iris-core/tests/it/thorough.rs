//! How often the properties are tried: seldom at a desk, where the tests should take seconds, and as often as they say
//! when `IRIS_THOROUGH` is set, as `make test` does.

/// So many random cases of the `thorough` that a property asks for.
#[expect(clippy::disallowed_methods, reason = "the one setting of the tests")]
pub fn cases(thorough: u32) -> u32 {
    if std::env::var_os("IRIS_THOROUGH").is_some() { thorough } else { thorough.div_ceil(4) }
}
