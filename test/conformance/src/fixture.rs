//! The server that the suite asks for: the one that is released, with a few tools, resources and prompts more.
//!
//! Everything between the bytes and what is added here is the product's: catalogue, protocol, HTTP, boards.

mod prompts;
mod resources;
mod tools;

use std::process::ExitCode;
use std::thread;

use majordomus_capability::{Registry, catalogue};
use majordomus_mcp_server::http::{Bound, Listen, Port};
use majordomus_mcp_server::{House, HouseOptions};
use majordomus_records::Checkout;

/// The word by which this program is that server.
pub(crate) const WORD: &str = "serve";

/// One black pixel, PNG in base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

/// Serves the current folder's checkout until it is killed.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let checkout = Checkout::find(&std::env::current_dir()?)?;
    let house = House::open(HouseOptions::new(registry()?, Ok(checkout)))?;
    house.adopt_all();
    house.watch_deadlines()?;
    let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Exactly(0) })?;
    let url = bound.url();
    house.serve(bound, None)?;
    house.keep();
    say(&url);
    loop {
        thread::park();
    }
}

/// Says where it answers, as the released server does.
#[expect(clippy::print_stderr, reason = "whoever started it reads that there")]
fn say(url: &str) {
    eprintln!("fixture at {url} (for clients: {url}/mcp)");
}

/// The product's registry, and behind it what the suite asks for: its own queries stay first.
fn registry() -> anyhow::Result<Registry> {
    let mut registry = catalogue();
    for tool in tools::all() {
        registry.add_raw(tool)?;
    }
    for resource in resources::ALL {
        registry.add_resource(*resource)?;
    }
    for prompt in prompts::ALL {
        registry.add_prompt(*prompt)?;
    }
    Ok(registry)
}
