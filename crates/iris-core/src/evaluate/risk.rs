//! How likely something is wrong, given what was measured of the rules that ran.
//!
//! Each failure class starts from the same constant share, `1-(1-prior)^(1/classes)`; a detector that fires or stays
//! quiet moves it by what its confusion matrix says. The interval comes from drawing each matrix many times with half
//! a count everywhere, by a generator seeded from the question itself, so the same question gives the same answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::Matrix;
use super::accuracy::round;
use crate::model::Name;
use crate::rules::FailureClass;

/// How often the matrices are drawn.
const DRAWS: usize = 2000;
/// How many estimates are kept.
const LATEST_MAX: usize = 256;

/// One rule that ran and whose accuracy was measured.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// Its name.
    pub rule: &'a str,
    /// What it looks for.
    pub classes: &'a [Name],
    /// Whether it failed the subject.
    pub fired: bool,
    /// How often it is right.
    pub matrix: Matrix,
}

/// What is believed before looking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// The share of outputs that are bad.
    pub share: f64,
    /// Over how many classes it is spread: a constant, whatever is examined.
    pub classes: u32,
}

impl Prior {
    fn per_class(self) -> f64 {
        1.0 - (1.0 - self.share).powf(1.0 / f64::from(self.classes.max(1)))
    }
}

/// The estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// How likely something is wrong.
    pub p_bad: f64,
    /// The lower end of its 95 % interval.
    pub lo: f64,
    /// The upper end.
    pub hi: f64,
    /// By failure class; null when no measured rule looked for it.
    pub per_class: BTreeMap<String, Option<f64>>,
    /// What the estimate takes for granted.
    pub assumptions: Vec<String>,
}

/// How likely each class is that a measured rule looked for.
fn per_class<'a>(examined: &[Examined<'a>], prior: Prior) -> BTreeMap<&'a str, f64> {
    let classes: BTreeSet<&str> = examined.iter().flat_map(|rule| rule.classes).map(|class| &**class).collect();
    let points: Vec<(f64, f64)> =
        examined.iter().map(|rule| (rule.matrix.sensitivity(), rule.matrix.specificity())).collect();
    let start = prior.per_class();
    classes.into_iter().map(|class| (class, posterior(class, examined, &points, start))).collect()
}

fn any_of(known: &BTreeMap<&str, f64>) -> f64 {
    1.0 - known.values().map(|q| 1.0 - q).product::<f64>()
}

/// How likely something is wrong, as [`risk`] says, without the interval, which takes a thousand times as long.
pub(super) fn p_bad(examined: &[Examined<'_>], prior: Prior) -> Option<f64> {
    let known = per_class(examined, prior);
    (!known.is_empty()).then(|| round(any_of(&known), 4))
}

/// The estimate without its interval and what it takes for granted. Nothing when no measured rule ran.
pub(super) fn without_interval(examined: &[Examined<'_>], prior: Prior) -> Option<Risk> {
    let known = per_class(examined, prior);
    let p_bad = round(any_of(&known), 4);
    let per_class = known.iter().map(|(class, q)| ((*class).to_owned(), Some(round(*q, 4)))).collect();
    (!known.is_empty()).then(|| Risk { p_bad, lo: p_bad, hi: p_bad, per_class, assumptions: Vec::new() })
}

/// Estimates the risk. Nothing when no measured rule ran. Most answers are examined by the same rules with the same
/// outcome, and thousands of draws are made for each estimate: the latest are kept.
pub fn risk(examined: &[Examined<'_>], prior: Prior) -> Option<Risk> {
    static LATEST: Mutex<BTreeMap<String, Option<Risk>>> = Mutex::new(BTreeMap::new());
    // The seed rounds the prior and leaves the classes out.
    let mut key = format!("{} {}", prior.share, seed(examined, prior));
    for rule in examined {
        key.push(';');
        rule.classes.iter().for_each(|class| key.extend([class.as_ref(), ","]));
    }
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = latest.get(&key) {
        return known.clone();
    }
    drop(latest);
    let estimate = estimated(examined, prior);
    latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    if latest.len() >= LATEST_MAX {
        latest.pop_first();
    }
    latest.insert(key, estimate.clone());
    estimate
}

fn estimated(examined: &[Examined<'_>], prior: Prior) -> Option<Risk> {
    let known = per_class(examined, prior);
    if known.is_empty() {
        return None;
    }
    let start = prior.per_class();
    let p_bad = any_of(&known);

    let mut random = Random::new(&seed(examined, prior));
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let rates: Vec<(f64, f64)> = examined.iter().map(|rule| random.rates(rule.matrix)).collect();
            1.0 - known.keys().map(|class| 1.0 - posterior(class, examined, &rates, start)).product::<f64>()
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    let at = |share: usize| draws.get((DRAWS * share).div_ceil(1000).saturating_sub(1)).copied().unwrap_or(p_bad);
    let per_class = FailureClass::ALL
        .iter()
        .map(|class| (class.as_str().to_owned(), known.get(class.as_str()).map(|q| round(*q, 4))))
        .collect();
    Some(Risk {
        p_bad: round(p_bad, 4),
        lo: round(at(25).min(p_bad), 4),
        hi: round(at(975).max(p_bad), 4),
        per_class,
        assumptions: vec![
            "failure classes are independent of each other".to_owned(),
            "rules that look for the same class err independently".to_owned(),
            format!(
                "{} of all outputs are bad before anything is known, spread evenly over {} classes",
                prior.share, prior.classes
            ),
            "the labelled corpus resembles what is judged here".to_owned(),
        ],
    })
}

/// How likely the class is, given the rates of the rules that looked for it: the most telling one that fired, or all
/// that stayed quiet.
fn posterior(class: &str, examined: &[Examined<'_>], rates: &[(f64, f64)], start: f64) -> f64 {
    let looked = || examined.iter().zip(rates).filter(|(rule, _)| rule.classes.iter().any(|of| of == class));
    let fired = looked()
        .filter(|(rule, _)| rule.fired)
        .map(|(_, (sens, spec))| ratio(sens * start, (1.0 - spec) * (1.0 - start)))
        .reduce(f64::max);
    fired.unwrap_or_else(|| {
        let (missed, right) = looked()
            .fold((start, 1.0 - start), |(missed, right), (_, (sens, spec))| (missed * (1.0 - sens), right * spec));
        ratio(missed, right)
    })
}

fn ratio(part: f64, rest: f64) -> f64 {
    if part + rest > 0.0 { part / (part + rest) } else { 0.0 }
}

fn seed(examined: &[Examined<'_>], prior: Prior) -> String {
    let mut seed = format!("risk:{:.3}:{}", prior.share, prior.classes);
    for rule in examined {
        let Matrix { tp, fp, missed, tn } = rule.matrix;
        seed.push_str(&format!(":{}{}{tp}/{fp}/{missed}/{tn}", rule.rule, if rule.fired { "!" } else { "" }));
    }
    seed
}

/// A small generator; the numbers need to be even, not unguessable. SplitMix64 by Vigna, public domain.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: &str) -> Self {
        Self { state: xxh3_64(seed.as_bytes()) }
    }

    /// Uniform on the open interval from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let unit = (mixed >> 11) as f64 / 9_007_199_254_740_992.0;
        unit.clamp(1e-16, 1.0 - 1e-16)
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * self.uniform().ln()).sqrt(), std::f64::consts::TAU * self.uniform());
        radius * angle.cos()
    }

    /// Marsaglia and Tsang 2000, doi:10.1145/358407.358414.
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = self.uniform().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        // Accepts more than 95 of 100 tries; the limit only keeps the loop finite.
        for _ in 0..1000 {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
        shape
    }

    fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        if x + y > 0.0 { x / (x + y) } else { 0.5 }
    }

    /// One draw of sensitivity and specificity.
    fn rates(&mut self, matrix: Matrix) -> (f64, f64) {
        let half = |count: u32| f64::from(count) + 0.5;
        (self.beta(half(matrix.tp), half(matrix.missed)), self.beta(half(matrix.tn), half(matrix.fp)))
    }
}
