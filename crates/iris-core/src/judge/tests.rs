//! What judges are asked and how they answer, with answers as models have been seen to give them.

mod answers;
mod asking;
mod money;
mod providers;
