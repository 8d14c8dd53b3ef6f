//! Pictures, sound and documents that stand as base64 in what was said: named, measured, and left out of it. What looks like
//! media by its name alone and not by its first bytes is text in disguise and stays, for the rules to look into.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::{Message, Part, Reading};

/// Shorter runs of base64 stay: rules look into them.
const RUN_CHARS_MIN: usize = 1024;
/// How much of a run is decoded to see what it is, in characters.
const HEAD_CHARS: usize = 64;
/// The longest type in front of a run, in bytes.
const TYPE_BYTES_MAX: usize = 128;
/// How deep lists and objects are searched.
const DEPTH_MAX: usize = 128;

/// Media by the bytes that begin it. Sources: the formats' own specifications.
const MAGIC: [(&[u8], &str); 15] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
];

/// The name that stands for media: type, size, and what to recognise it by.
pub fn placeholder(kind: &str, base64: &str) -> String {
    let base64 = base64.trim_end_matches('=');
    let bytes = base64.len().saturating_mul(3) / 4;
    let mut name = format!("{kind}, {bytes} bytes");
    if let Ok(decoded) = STANDARD_NO_PAD.decode(base64) {
        name.push_str(", sha256=");
        for byte in Sha256::digest(&decoded).iter().take(8) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

/// Leaves media out of everything that was asked, answered, called with or returned.
pub fn leave_out(reading: &mut Reading) {
    for text in [&mut reading.input, &mut reading.output].into_iter().flatten() {
        shorten(text);
    }
    for value in [&mut reading.tool_arguments, &mut reading.tool_result].into_iter().flatten() {
        shorten_value(value, 0);
    }
    let messages = [&mut reading.input_messages, &mut reading.output_messages].into_iter().flatten().flatten();
    for part in messages.flat_map(|message: &mut Message| &mut message.parts) {
        match part {
            Part::Text { text } | Part::Reasoning { text } => shorten(text),
            Part::ToolCall { arguments: value, .. } | Part::ToolResult { result: value, .. } => shorten_value(value, 0),
            Part::Other { .. } => {}
        }
    }
}

fn shorten_value(value: &mut Value, depth: usize) {
    match value {
        Value::String(text) => shorten(text),
        Value::Array(items) if depth < DEPTH_MAX => items.iter_mut().for_each(|item| shorten_value(item, depth + 1)),
        Value::Object(map) if depth < DEPTH_MAX => map.values_mut().for_each(|item| shorten_value(item, depth + 1)),
        _ => {}
    }
}

/// Puts placeholders where media stand in a text.
fn shorten(text: &mut String) {
    if text.len() < RUN_CHARS_MIN {
        return;
    }
    let mut short = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some((start, end)) = run(text, from) {
        from = end;
        let Some(base64) = text.get(start..end) else { break };
        let Some(kind) = kind(base64) else { continue };
        let before = text.get(done..start).unwrap_or_default();
        let before = without_type(before);
        short.push_str(before);
        let _ = write!(short, "[{}]", placeholder(kind, base64));
        done = end;
    }
    if done > 0 {
        short.push_str(text.get(done..).unwrap_or_default());
        *text = short;
    }
}

/// The next long run of base64 at or after a place.
fn run(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut at = from;
    while at < bytes.len() {
        let rest = bytes.get(at..)?;
        let length = rest.iter().position(|byte| !is_base64(byte)).unwrap_or(rest.len());
        if length >= RUN_CHARS_MIN {
            let padding = rest.get(length..)?.iter().take(2).take_while(|byte| **byte == b'=').count();
            return Some((at, at + length + padding));
        }
        at += length.max(1);
    }
    None
}

/// What a run is, by its first bytes.
fn kind(base64: &str) -> Option<&'static str> {
    let head = STANDARD_NO_PAD.decode(base64.get(..HEAD_CHARS)?).ok()?;
    let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind);
    known.or_else(|| {
        let riff = head.starts_with(b"RIFF").then(|| head.get(8..12)).flatten();
        match (riff, head.get(4..8)) {
            (Some(b"WEBP"), _) => Some("image/webp"),
            (Some(b"WAVE"), _) => Some("audio/wav"),
            (_, Some(b"ftyp")) => Some("video/mp4"),
            _ => None,
        }
    })
}

/// The text before a run without `data:image/png;base64,` at its end.
fn without_type(before: &str) -> &str {
    let Some(head) = before.strip_suffix(";base64,") else { return before };
    let from = head.len().saturating_sub(TYPE_BYTES_MAX);
    let from = (from..=head.len()).find(|at| head.is_char_boundary(*at)).unwrap_or(head.len());
    match head.get(from..).and_then(|tail| tail.rfind("data:")) {
        Some(at) => head.get(..from + at).unwrap_or(before),
        None => before,
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn picture(bytes: usize) -> String {
        let mut data = b"\x89PNG\r\n\x1a\n".to_vec();
        data.extend((0..bytes - 8).map(|at| u8::try_from(at * 31 % 251).unwrap()));
        STANDARD.encode(data)
    }

    fn shortened(text: &str) -> String {
        let mut text = text.to_owned();
        shorten(&mut text);
        text
    }

    #[test]
    fn media_in_a_text_are_named_and_measured() {
        let data = picture(3000);
        let short = shortened(&format!("Look: data:image/png;base64,{data} and tell."));
        assert!(
            short.starts_with("Look: [image/png, 3000 bytes, sha256=") && short.ends_with("] and tell."),
            "{short}"
        );
        assert_eq!(short.len(), "Look: [image/png, 3000 bytes, sha256=0123456789abcdef] and tell.".len());
        let twice = shortened(&format!("é{data} é {data}"));
        assert_eq!(twice.matches("[image/png, 3000 bytes").count(), 2);
        assert!(twice.starts_with("é[") && twice.contains("] é ["), "{twice}");
        assert_eq!(shortened(&short), short);
    }

    #[test]
    fn what_only_looks_like_media_stays_to_be_searched() {
        let words = STANDARD.encode("The card is 4111 and more. ".repeat(60));
        let short = picture(300);
        let broken = "A".repeat(5000);
        for text in [words.clone(), format!("data:image/png;base64,{words}"), short, broken, "plain words ".repeat(500)]
        {
            assert_eq!(shortened(&text), text);
        }
    }

    #[test]
    fn media_are_left_out_of_every_part() {
        let data = picture(2000);
        let mut reading = Reading {
            input: Some(data.clone()),
            output: Some(format!("data:image/png;base64,{data}")),
            tool_arguments: Some(json!({"files": [{"blob": data}], "name": "x"})),
            tool_result: Some(json!(data)),
            output_messages: Some(vec![Message {
                role: "assistant".to_owned(),
                parts: vec![
                    Part::Text { text: data.clone() },
                    Part::ToolResult { id: None, name: None, result: json!([data]) },
                ],
            }]),
            ..Reading::default()
        };
        leave_out(&mut reading);
        let left = serde_json::to_string(&reading).unwrap();
        assert_eq!(left.matches("[image/png, 2000 bytes, sha256=").count(), 6, "{left}");
        assert!(left.len() < 1500 && left.contains("\"name\":\"x\""), "{left}");
    }
}
