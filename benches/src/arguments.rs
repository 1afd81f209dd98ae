//! What the command line may say.

use crate::pairs::Effort;
use crate::rows::GROUPS;

/// What to measure, and how long.
pub(crate) struct Arguments {
    quick: bool,
    only: Vec<String>,
}

impl Arguments {
    /// Reads the arguments; what is returned otherwise is the usage.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self { quick: false, only: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => parsed.quick = true,
                "--only" => match arguments.next() {
                    Some(name) if GROUPS.iter().any(|group| group.name == name) => parsed.only.push(name),
                    _ => return Err(usage()),
                },
                _ => return Err(usage()),
            }
        }
        Ok(parsed)
    }

    /// Whether a group of rows is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// How many rounds to take.
    pub(crate) fn effort(&self) -> Effort {
        if self.quick { Effort::Quick } else { Effort::Full }
    }
}

fn usage() -> String {
    let mut text = "usage: majordomus-benches [--quick] [--only NAME]...\n\n".to_owned();
    for group in GROUPS {
        text.push_str(&format!("  {:<18} {}\n", group.name, group.about));
    }
    text
}
