//! What a rule is, in closed vocabularies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Knob, Need};

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// Every member, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as it stands in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
pub(super) use vocabulary;

vocabulary! {
    /// What rules are grouped by.
    Bundle {
        /// Is the answer all there?
        Completeness = "completeness",
        /// Does it speak to what was asked?
        Relevance = "relevance",
        /// Does it harm?
        Safety = "safety",
        /// Did it cost too much?
        Cost = "cost",
        /// Whatever the deployment asks for.
        Custom = "custom",
    }
}

vocabulary! {
    /// The kind of claim a rule makes, which decides what its failure can do.
    Kind {
        /// A statistic held against a number: moves the score, never decides.
        Measurement = "measurement",
        /// A pattern that is there or not, with a measurable error rate.
        Detection = "detection",
        /// A signal that stands for something nobody can observe.
        Inference = "inference",
        /// A model's opinion.
        Judgment = "judgment",
        /// What the deployment asks for.
        Policy = "policy",
        /// A check against the outside world.
        Verification = "verification",
    }
}

vocabulary! {
    /// How a rule arrives at its claim.
    Mechanism {
        /// Arithmetic.
        Formula = "formula",
        /// Patterns and checksums.
        Pattern = "pattern",
        /// Reasoned signs.
        Heuristic = "heuristic",
        /// A language model.
        Model = "model",
        /// Something outside.
        External = "external",
    }
}

vocabulary! {
    /// The question a rule helps to answer.
    Question {
        /// Is the output safe?
        SafeOutput = "safe_output",
        /// Does it rest on what was read?
        Grounded = "grounded",
        /// Is it whole?
        Complete = "complete",
        /// Does it speak to the question?
        Relevant = "relevant",
        /// Was the task done?
        TaskCompleted = "task_completed",
        /// Were tools used correctly?
        ToolUseCorrect = "tool_use_correct",
        /// Did it stay within the budget?
        WithinBudget = "within_budget",
    }
}

vocabulary! {
    /// What can be wrong.
    FailureClass {
        /// Personal data left.
        PiiLeak = "pii_leak",
        /// A credential left.
        CredentialLeak = "credential_leak",
        /// The output carries instructions for a model.
        Injection = "injection",
        /// An instruction planted in a tool's result was obeyed.
        InjectionCompliance = "injection_compliance",
        /// A tool failed and the answer hides it.
        SilentToolFailure = "silent_tool_failure",
        /// The same calls again and again.
        ToolLoop = "tool_loop",
        /// A placeholder instead of work.
        Stub = "stub",
        /// Something made up.
        Fabrication = "fabrication",
        /// Nothing that was read says so.
        Ungrounded = "ungrounded",
        /// A part of the ask is left out.
        IncompleteAsk = "incomplete_ask",
        /// Another question was answered.
        OffTask = "off_task",
        /// It cost too much.
        OverBudget = "over_budget",
        /// The form is wrong.
        Format = "format",
        /// A tool was called with wrong arguments.
        InvalidToolCall = "invalid_tool_call",
        /// The wrong steps were taken.
        WrongTrajectory = "wrong_trajectory",
        /// The wrong tool was used.
        WrongTool = "wrong_tool",
    }
}

/// What a rule is.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleMeta {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its bundle.
    pub bundle: Bundle,
    /// One sentence for people.
    pub description: Cow<'static, str>,
    /// What to do when it fails.
    pub suggestion: Cow<'static, str>,
    /// Its weight in the score.
    pub weight: f64,
    /// The kind of claim.
    pub kind: Kind,
    /// How it arrives at it.
    pub mechanism: Mechanism,
    /// Inputs without which it skips.
    pub needs: &'static [Need],
    /// Inputs it also reads when they are there.
    pub reads: &'static [Need],
    /// The question it answers.
    pub question: Question,
    /// The failure classes it looks for.
    pub classes: &'static [FailureClass],
    /// Rises whenever its answers change.
    pub version: u32,
    /// Whether its failure vetoes unless configured otherwise.
    pub critical: bool,
    /// Its failure comes from something that was seen and stays true whatever else turns up later; otherwise from
    /// something that was missing and may yet come.
    pub stands: bool,
    /// The numbers a deployment may set.
    pub knobs: &'static [Knob],
}
