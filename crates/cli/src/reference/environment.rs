//! The page of environment variables.

use majordomus_capability::project::markdown::{code, table, text};

use super::{ENVIRONMENT, Page};
use crate::variables::VARIABLES;

pub(super) fn page() -> Page {
    let mut rows: Vec<_> = VARIABLES.iter().map(|one| row(one.name, one.read_by, one.says)).collect();
    for provider in majordomus_providers::all() {
        if let Some(name) = provider.identity.and_then(|identity| identity.server_variable) {
            let says = format!(
                "The conversation that {} starts this server in: a model that attaches joins the episode that its hooks drew.",
                provider.title
            );
            rows.push(row(name, "majordomus mcp", &says));
        }
        for name in provider.signs.iter().flat_map(|signs| signs.variables) {
            let says = format!("That a hook that was declared for another client was run by {}.", provider.title);
            rows.push(row(name, "majordomus capture session", &says));
        }
        for name in provider.adapter.iter().flat_map(|adapter| adapter.project_variables) {
            let read_by = format!("majordomus capture session --provider {}", provider.id);
            let says = "The project's folder, as the provider names it to its hooks; used where the payload names none \
                        that is in a checkout.";
            rows.push(row(name, &read_by, says));
        }
    }
    let table = table(["variable", "read by", "says"], rows);
    let page = format!(
        "# Environment variables\n\n{table}\nA variable that is set to nothing counts as one that is not set.\n"
    );
    Page::markdown(ENVIRONMENT, &page)
}

fn row(name: &str, read_by: &str, says: &str) -> [String; 3] {
    [code(name), text(read_by), text(says)]
}
