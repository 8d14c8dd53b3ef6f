//! Protobuf's wire format: reading fields without owning them, writing them.
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

use super::Stop;

/// How deep unknown groups, a form that OTLP never used, may nest.
const GROUP_DEPTH_MAX: usize = 32;

/// Wire types, the low three bits of a key.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const LEN: u8 = 2;
pub(super) const GROUP_START: u8 = 3;
pub(super) const GROUP_END: u8 = 4;
pub(super) const FIXED32: u8 = 5;

/// Reads fields one after the other; knows where in the body it stands.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

/// A field's value as the wire holds it.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Len(&'a [u8]),
    /// A group, skipped.
    Group,
}

impl<'a> Value<'a> {
    /// The varint, 0 for any other form: a wrong form was refused when the body was walked.
    pub(super) fn varint(self) -> u64 {
        if let Value::Varint(value) = self { value } else { 0 }
    }

    /// The eight bytes as a number, 0 for any other form.
    pub(super) fn fixed64(self) -> u64 {
        if let Value::Fixed64(value) = self { value } else { 0 }
    }

    /// The four bytes as a number, 0 for any other form.
    pub(super) fn fixed32(self) -> u32 {
        if let Value::Fixed32(value) = self { value } else { 0 }
    }

    /// The bytes, none for any other form.
    pub(super) fn bytes(self) -> &'a [u8] {
        if let Value::Len(bytes) = self { bytes } else { &[] }
    }

    /// The fields of the message that ends at `end` of the body.
    pub(super) fn message(self, end: usize) -> Reader<'a> {
        Reader::within(self.bytes(), end)
    }

    /// The text that ends at `end` of the body.
    pub(super) fn text(self, end: usize) -> Result<&'a str, Stop> {
        let bytes = self.bytes();
        std::str::from_utf8(bytes)
            .map_err(|_| Stop::Malformed { offset: end - bytes.len(), why: "a string is not UTF-8" })
    }
}

impl<'a> Reader<'a> {
    /// Over a whole body.
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { rest: body, end: body.len() }
    }

    /// Over bytes that end at `end` of the body.
    pub(super) fn within(bytes: &'a [u8], end: usize) -> Self {
        Self { rest: bytes, end }
    }

    /// Where it stands, in bytes from the start of the body.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Whether nothing is left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn stop(&self, why: &'static str) -> Stop {
        Stop::Malformed { offset: self.offset(), why }
    }

    /// The next field's number and wire type.
    #[inline]
    pub(super) fn key(&mut self) -> Result<(u32, u8), Stop> {
        if let [byte, rest @ ..] = self.rest
            && (0x08..0x80).contains(byte)
        {
            self.rest = rest;
            return Ok((u32::from(byte >> 3), byte & 7));
        }
        self.long_key()
    }

    fn long_key(&mut self) -> Result<(u32, u8), Stop> {
        let before = *self;
        let key = u32::try_from(self.varint()?).map_err(|_| before.stop("a field number is too large"))?;
        if key < 8 {
            return Err(before.stop("a field number is 0"));
        }
        Ok((key >> 3, (key & 7) as u8))
    }

    /// The value that follows a key of the given wire type; a group is skipped.
    #[inline]
    pub(super) fn value(&mut self, number: u32, wire: u8) -> Result<Value<'a>, Stop> {
        match wire {
            LEN => self.len().map(Value::Len),
            VARINT => self.varint().map(Value::Varint),
            FIXED64 => self.array().map(u64::from_le_bytes).map(Value::Fixed64),
            FIXED32 => self.array().map(u32::from_le_bytes).map(Value::Fixed32),
            GROUP_START => self.skip_group(number, GROUP_DEPTH_MAX).map(|()| Value::Group),
            GROUP_END => Err(self.stop("a group ends that did not begin")),
            _ => Err(self.stop("a wire type does not exist")),
        }
    }

    /// The next field, none at the end.
    #[inline]
    pub(super) fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, Stop> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire) = self.key()?;
        Ok(Some((number, self.value(number, wire)?)))
    }

    /// A base-128 number of at most ten bytes.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Stop> {
        if let [byte, rest @ ..] = self.rest
            && *byte < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Stop> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            let low = u64::from(byte & 0x7f);
            if index == 9 && low > 1 {
                break;
            }
            value |= low << (7 * index);
            if *byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(self.stop(if self.rest.len() < 10 { "a number is cut off" } else { "a number is longer than 64 bits" }))
    }

    /// A length and that many bytes.
    #[inline]
    pub(super) fn len(&mut self) -> Result<&'a [u8], Stop> {
        let before = *self;
        let len = self.varint()?;
        match usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len)) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(before.stop("a length points past the end")),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(self.stop("a fixed-size number is cut off")),
        }
    }

    fn skip_group(&mut self, number: u32, depth_left: usize) -> Result<(), Stop> {
        if depth_left == 0 {
            return Err(self.stop("groups nest too deep"));
        }
        loop {
            let (inner, wire) = self.key()?;
            match wire {
                GROUP_END if inner == number => return Ok(()),
                GROUP_START => self.skip_group(inner, depth_left - 1)?,
                _ => {
                    self.value(inner, wire)?;
                }
            }
        }
    }
}

/// Appends a base-128 number in its shortest form.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put_varint`] appends.
pub(super) fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}
