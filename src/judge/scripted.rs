//! A provider that says what it was told to say. Its answers carry ids that begin with `scripted-`, so that nobody takes
//! them for a model's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iris_core::judge::{Answer, Stop};

/// Answers in turn, from the first again after the last.
#[derive(Debug, Clone)]
pub struct Scripted {
    answers: Arc<[String]>,
    next: Arc<AtomicUsize>,
}

impl Scripted {
    /// With these answers; with none it says nothing.
    pub fn new(answers: impl IntoIterator<Item = String>) -> Self {
        Self { answers: answers.into_iter().collect(), next: Arc::default() }
    }

    pub(super) fn answer(&self) -> Answer {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let text = match self.answers.len() {
            0 => String::new(),
            count => self.answers[turn % count].clone(),
        };
        // Nobody is asked, so nothing is sent and nothing is paid.
        Answer { text, stop: Stop::End, id: Some(format!("scripted-{turn}")), usage: Some((0, 0)) }
    }
}
