//! Token counts by what providers and libraries mean with them: input with everything that was sent, cached or not, and
//! output with everything that was received, reasoning included.

use serde_json::{Map, Value};

use super::recorded::Found;
use super::{attributes, fill, keys, salvage};
use crate::model::{RawSpan, Reading, Role, Usage};

/// A library that hands on Anthropic's own count, which leaves cached tokens out, under the conventions' name for a count
/// with them.
const OUTSIDE_SCOPES: [&str; 1] = ["openlit.instrumentation.anthropic"];
/// Where parts of a count stand that dialects do not read themselves.
const CACHE_READ: [&str; 4] = [
    "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens",
    "gen_ai.usage.prompt_tokens_details.cached_tokens",
    "gen_ai.usage.input_tokens_details.cached_tokens",
];
const CACHE_WRITE: [&str; 2] =
    ["ai.usage.inputTokenDetails.cacheWriteTokens", "gen_ai.usage.details.cache_write_tokens"];
const REASONING: [&str; 3] = [
    "ai.usage.reasoningTokens",
    "ai.usage.outputTokenDetails.reasoningTokens",
    "gen_ai.usage.completion_tokens_details.reasoning_tokens",
];
const INPUT_AUDIO: [&str; 3] = [
    "gen_ai.usage.audio.input_tokens",
    "llm.token_count.prompt_details.audio",
    "gen_ai.usage.details.input_audio_tokens",
];
const OUTPUT_AUDIO: [&str; 3] = [
    "gen_ai.usage.audio.output_tokens",
    "llm.token_count.completion_details.audio",
    "gen_ai.usage.details.output_audio_tokens",
];

/// Brings the counts of a model call to the one meaning, and adds the parts that only some libraries state.
pub fn settle(reading: &mut Reading, span: &RawSpan) {
    if reading.role == Some(Role::Llm) {
        let of = |names: &[&'static str]| {
            names.iter().find_map(|key| Some((*key, attributes::count(span.attributes.get(*key)?)?)))
        };
        let (usage, sources) = (&mut reading.usage, &mut reading.sources);
        fill("usage.cache_read", &mut usage.cache_read, sources, of(&CACHE_READ));
        fill("usage.cache_write", &mut usage.cache_write, sources, of(&CACHE_WRITE));
        fill("usage.reasoning", &mut usage.reasoning, sources, of(&REASONING));
        fill("usage.input_audio", &mut usage.input_audio, sources, of(&INPUT_AUDIO));
        fill("usage.output_audio", &mut usage.output_audio, sources, of(&OUTPUT_AUDIO));
    }
    let thoughts_apart =
        reading.sources.get("usage.reasoning").is_some_and(|key| key == keys::gen_ai::REASONING_EXPERIMENTAL);
    let outside = OUTSIDE_SCOPES.contains(&span.scope.name.as_str());
    include(&mut reading.usage, outside, thoughts_apart);
}

/// Adds cached tokens to an input, and reasoning to an output, that were counted without them. What cannot be part of a
/// count, because it is larger, stands beside it; a stated total tells of the rest; else the parts are parts.
pub fn include(usage: &mut Usage, cache_outside: bool, thoughts_apart: bool) {
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let thoughts = usage.reasoning.unwrap_or(0);
    let (Some(input), output) = (usage.input, usage.output.unwrap_or(0)) else {
        if let Some(output) = usage.output.filter(|output| thoughts > *output) {
            usage.output = Some(output.saturating_add(thoughts));
        }
        return;
    };
    let beyond = usage.total.map(|total| total.checked_sub(input.saturating_add(output)));
    let (add_cached, add_thoughts) = match beyond.flatten().filter(|_| usage.output.is_some()) {
        Some(0) => (cached > input, thoughts > output),
        Some(beyond) if beyond == thoughts && (beyond != cached || thoughts_apart) => (cached > input, true),
        Some(beyond) if beyond == cached => (true, thoughts > output),
        Some(beyond) if beyond == cached.saturating_add(thoughts) => (true, true),
        _ => (cached > input || cache_outside, thoughts > output || thoughts_apart),
    };
    if add_cached {
        usage.input = Some(input.saturating_add(cached));
    }
    if add_thoughts && usage.output.is_some() {
        usage.output = Some(output.saturating_add(thoughts));
    }
}

/// Token counts as a JSON object under any of the names that providers and libraries give them.
pub fn stated(reading: &mut Reading, found: Found<'_>) {
    let Some((key, value)) = found else { return };
    let counts = salvage::unwrapped(value);
    let Some(counts) = counts.as_object() else { return };
    let mut usage = of_json(counts);
    // Anthropic's own object names no total, and leaves what a cache held or took out of the input.
    let is_anthropics = usage.total.is_none()
        && counts.contains_key("input_tokens")
        && ["cache_read_input_tokens", "cache_creation_input_tokens"].iter().any(|name| counts.contains_key(*name));
    // Gemini counts thoughts beside the candidates.
    let is_geminis = ["candidates_token_count", "candidatesTokenCount"].iter().any(|name| counts.contains_key(*name));
    include(&mut usage, is_anthropics, is_geminis);
    let (into, sources) = (&mut reading.usage, &mut reading.sources);
    let mut take = |field: &'static str, into: &mut Option<u64>, count: Option<u64>| {
        fill(field, into, sources, count.map(|count| (key, count)));
    };
    take("usage.input", &mut into.input, usage.input);
    take("usage.output", &mut into.output, usage.output);
    take("usage.total", &mut into.total, usage.total);
    take("usage.cache_read", &mut into.cache_read, usage.cache_read);
    take("usage.cache_write", &mut into.cache_write, usage.cache_write);
    take("usage.reasoning", &mut into.reasoning, usage.reasoning);
    take("usage.input_audio", &mut into.input_audio, usage.input_audio);
    take("usage.output_audio", &mut into.output_audio, usage.output_audio);
}

fn of_json(counts: &Map<String, Value>) -> Usage {
    let of = |names: &[&str]| names.iter().find_map(|name| attributes::count(counts.get(*name)?));
    let within = |outer: &[&str], names: &[&str]| {
        outer.iter().find_map(|outer| {
            let details = counts.get(*outer)?;
            names.iter().find_map(|name| attributes::count(details.get(*name)?))
        })
    };
    let sent = ["prompt_tokens_details", "input_tokens_details", "input_token_details"];
    let received = ["completion_tokens_details", "output_tokens_details", "output_token_details"];
    let input =
        ["input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount", "promptTokens", "inputTokens"];
    let output = [
        "output_tokens",
        "completion_tokens",
        "candidates_token_count",
        "candidatesTokenCount",
        "completionTokens",
        "outputTokens",
    ];
    let read =
        ["cache_read_input_tokens", "cacheReadInputTokens", "cached_content_token_count", "cachedContentTokenCount"];
    Usage {
        input: of(&input),
        output: of(&output),
        total: of(&["total_tokens", "total_token_count", "totalTokenCount", "totalTokens", "total"]),
        cache_read: of(&read).or_else(|| within(&sent, &["cached_tokens", "cache_read"])),
        cache_write: of(&["cache_creation_input_tokens", "cacheWriteInputTokens"])
            .or_else(|| within(&sent, &["cache_creation", "cache_write_tokens"])),
        reasoning: of(&["thoughts_token_count", "thoughtsTokenCount"])
            .or_else(|| within(&received, &["reasoning_tokens", "reasoning"])),
        input_audio: within(&sent, &["audio_tokens", "audio"]),
        output_audio: within(&received, &["audio_tokens", "audio"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{include, stated};
    use crate::model::{Reading, Usage};

    fn counts(value: &Value) -> [Option<u64>; 5] {
        let mut reading = Reading::default();
        stated(&mut reading, Some(("usage", value)));
        let usage = reading.usage;
        [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
    }

    #[test]
    fn a_providers_own_object_is_read_by_its_meaning() {
        let openai = json!({"prompt_tokens": 221, "completion_tokens": 30, "total_tokens": 251,
            "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 12}});
        assert_eq!(counts(&openai), [Some(221), Some(30), Some(8), None, Some(12)]);
        let responses = json!({"input_tokens": 221, "output_tokens": 30, "total_tokens": 251,
            "input_tokens_details": {"cached_tokens": 8}, "output_tokens_details": {"reasoning_tokens": 12}});
        assert_eq!(counts(&responses), counts(&openai));
        let anthropic = json!({"input_tokens": 161, "output_tokens": 12, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 4});
        assert_eq!(counts(&anthropic), [Some(173), Some(12), Some(8), Some(4), None]);
        assert_eq!(counts(&json!(anthropic.to_string())), counts(&anthropic), "as a text");
        let gemini = json!({"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 50,
            "cachedContentTokenCount": 40, "totalTokenCount": 170});
        assert_eq!(counts(&gemini), [Some(100), Some(70), Some(40), None, Some(50)]);
        let untotalled = json!({"prompt_token_count": 100, "candidates_token_count": 60, "thoughts_token_count": 50});
        assert_eq!(counts(&untotalled), [Some(100), Some(110), None, None, Some(50)]);
        let bedrock = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 115, "cacheReadInputTokens": 90, "cacheWriteInputTokens": 10});
        assert_eq!(counts(&bedrock), [Some(110), Some(5), Some(90), Some(10), None]);
        let langchain = json!({"input_tokens": 345, "output_tokens": 17, "total_tokens": 362,
            "input_token_details": {"audio": 0, "cache_read": 8}, "output_token_details": {"reasoning": 2}});
        assert_eq!(counts(&langchain), [Some(345), Some(17), Some(8), None, Some(2)]);
        assert_eq!(counts(&json!("not counted")), [None; 5]);
        assert_eq!(counts(&json!({"total_tokens": 9})), [None; 5], "a total is no part");
    }

    #[test]
    fn parts_are_added_only_where_they_were_left_out() {
        let of = |input, output, total, read, write, thoughts| Usage {
            input: Some(input),
            output: Some(output),
            total,
            cache_read: read,
            cache_write: write,
            reasoning: thoughts,
            ..Usage::default()
        };
        for (why, mut usage, outside, want) in [
            ("part of the input", of(20_212, 931, None, Some(16_298), None, None), false, (20_212, 931)),
            ("larger than the input", of(19, 5, None, None, Some(39_000), None), false, (39_019, 5)),
            ("added already", of(39_019, 5, None, Some(39_000), None, None), false, (39_019, 5)),
            ("the total has them", of(2, 5, Some(9_849), Some(9_842), None, None), false, (9_844, 5)),
            ("the total has them not", of(161, 12, Some(173), Some(8), Some(4), None), true, (161, 12)),
            ("a library that leaves them out", of(161, 12, None, Some(8), Some(4), None), true, (173, 12)),
            ("thoughts beside", of(10, 20, Some(80), None, None, Some(50)), false, (10, 70)),
            ("thoughts within", of(10, 70, Some(80), None, None, Some(50)), false, (10, 70)),
            ("both beside", of(10, 20, Some(90), Some(10), None, Some(50)), false, (20, 70)),
            ("huge", of(u64::MAX, 1, Some(1), Some(u64::MAX), Some(9), Some(9)), true, (u64::MAX, 10)),
        ] {
            include(&mut usage, outside, false);
            assert_eq!((usage.input, usage.output), (Some(want.0), Some(want.1)), "{why}");
        }
        let mut nothing = Usage { cache_read: Some(8), ..Usage::default() };
        include(&mut nothing, true, true);
        assert_eq!((nothing.input, nothing.output), (None, None), "a part alone is no count");
    }
}
