//! Counters of the rooms in the OpenMetrics text format. Labels are bounded: lanes, doors, states, never names that
//! agents chose.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a number does over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// One metric with all its label combinations.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name without the `_total` that a counter gets.
    pub name: &'static str,
    /// What it counts and in which unit.
    pub help: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its values.
    pub samples: Vec<Sample>,
}

/// One value.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Label names and values, in a fixed order.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: u64,
}

impl Family {
    /// A metric with one value and no labels.
    pub fn one(name: &'static str, help: &'static str, kind: Kind, value: u64) -> Self {
        Self { name, help, kind, labels: &[], samples: vec![Sample { labels: Vec::new(), value }] }
    }

    /// A metric with one label.
    pub fn by(
        name: &'static str,
        help: &'static str,
        kind: Kind,
        labels: &'static [&'static str; 1],
        values: impl IntoIterator<Item = (String, u64)>,
    ) -> Self {
        let [label] = *labels;
        let samples = values.into_iter().map(|(one, value)| Sample { labels: vec![(label, one)], value }).collect();
        Self { name, help, kind, labels, samples }
    }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let metric_type = match family.kind {
                Kind::Counter => ConstCounter::new(0_u64).metric_type(),
                Kind::Gauge => ConstGauge::new(0_u64).metric_type(),
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, metric_type)?;
            for sample in &family.samples {
                let one = metric.encode_family(&sample.labels)?;
                match family.kind {
                    Kind::Counter => ConstCounter::new(sample.value).encode(one)?,
                    Kind::Gauge => ConstGauge::new(sample.value).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

/// The text of all metrics.
///
/// # Errors
/// When a metric cannot be encoded.
pub fn encode(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_carry_help_type_and_labels() {
        let text = encode(vec![
            Family::by("iris_things", "Things seen", Kind::Counter, &["lane"], [("traces".to_owned(), 3)]),
            Family::one("iris_open", "Things open", Kind::Gauge, 2),
        ])
        .unwrap();
        assert!(text.contains("# TYPE iris_things counter"), "{text}");
        assert!(text.contains("iris_things_total{lane=\"traces\"} 3"), "{text}");
        assert!(text.contains("# TYPE iris_open gauge") && text.contains("iris_open 2"), "{text}");
    }
}
