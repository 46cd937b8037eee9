//! The nouns: plain data that every layer uses. They depend only on each other and on the rules.

mod after;
mod claim;
mod content;
mod event;
mod item;
mod new_item;
mod next_stage;
mod schedule;
mod step;
mod time;
mod value;

pub use after::{Answer, Deadline, IfFailed, Need};
pub use claim::{Pick, Receipt};
#[cfg(feature = "python")]
pub use content::integer_beyond_64_bits;
pub use content::{Content, Stored, checksum, read_json};
pub use event::Event;
pub use item::{Attempt, Counts, GroupCounts, Item, Status};
pub use new_item::{Key, KeyName, NewItem, OnDuplicate, When};
pub use next_stage::NextStage;
pub use schedule::Schedule;
pub use step::{RecordedStep, StepKind};
pub use time::{LATEST_MS, Now, millis, parse_ms};
pub use value::Value;
