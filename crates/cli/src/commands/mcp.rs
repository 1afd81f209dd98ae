//! `majordomus mcp`: one client over stdio.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use majordomus_capability::catalogue;
use majordomus_episodes_core::EpisodeDriver;
use majordomus_episodes_core::board::{Adopted, BoardOptions, EpisodeBoard, Limits};
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_mcp_server::{StdioOptions, Threads, serve_stdio};
use majordomus_records::clock::rfc3339;
use majordomus_records::store::Silence;
use majordomus_records::{Checkout, Policy, RecordDriver, Store, Unrecorded};

use crate::args::Mcp;
use crate::output;

/// How often a server says that it lives and finishes what is past its time.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// How long finishing what others have left may take each time.
const SWEEP: Duration = Duration::from_secs(20);
/// How long a record that was not composed at once may still take when the client has gone.
const COMPOSE_AT_END: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: &Mcp) -> anyhow::Result<ExitCode> {
    let policy = super::policy(&arguments.silence)?;
    let recorder = open_recorder(policy)?;
    let driver: Arc<dyn EpisodeDriver> = match &recorder {
        Ok(recorder) => recorder.clone(),
        Err(nowhere) => nowhere.clone(),
    };
    let limits = Limits { grace: policy.own_grace(), ..Limits::default() };
    let board = EpisodeBoard::with(BoardOptions {
        driver,
        limits,
        run: Arc::new(Threads::default()),
        ..BoardOptions::default()
    });
    if let Ok(recorder) = &recorder {
        keep_house(recorder.clone(), board.clone());
    }
    let mut options = StdioOptions::new(board, PeerBoard::new(), catalogue());
    options.grace = policy.own_grace();
    options.records = recorder.as_ref().ok().map(|recorder| recorder.store().clone());
    options.diagnostics = Box::new(output::note);
    serve_stdio(options)?;
    if let Ok(recorder) = &recorder {
        recorder.compose_waiting(COMPOSE_AT_END);
        recorder.leave();
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens this checkout for recording. Outside a repository the server serves all the same and says that it records
/// nothing.
fn open_recorder(policy: Policy) -> anyhow::Result<Result<Arc<RecordDriver>, Arc<Unrecorded>>> {
    let folder = std::env::current_dir().unwrap_or_default();
    match Checkout::find(&folder) {
        Ok(checkout) => Ok(Ok(Arc::new(RecordDriver::new(Store::open(checkout, policy).by_promise())?))),
        Err(error) => Ok(Err(Arc::new(Unrecorded::because(error.into())))),
    }
}

/// Beside the session, never in its way: ends what is past its time, adopts what waits for its client, and says now
/// and then that this process lives.
fn keep_house(recorder: Arc<RecordDriver>, board: EpisodeBoard) {
    let work = move || {
        let mut said = HashSet::new();
        let store = recorder.store();
        loop {
            for trouble in store.sweep(SWEEP).troubles {
                // Said once and not every half minute: nobody can mend it from here.
                if said.insert(trouble.clone()) {
                    output::note(&format!("majordomus: {trouble}"));
                }
            }
            adopt(store, &board);
            thread::sleep(HOUSEKEEPING);
            recorder.beat();
        }
    };
    // Without the thread the session works; what is past its time is left to the next command.
    let _ = thread::Builder::new().name("housekeeping".into()).spawn(work);
}

fn adopt(store: &Store, board: &EpisodeBoard) {
    let grace = store.policy().own_grace();
    for (key, open) in store.adoptable().unwrap_or_default() {
        let Some(start) = &open.log.start else { continue };
        let waiting_for = match open.silence {
            // The board's own grace is what is left of the one that was promised.
            Silence::Waiting(left) => grace.saturating_sub(left),
            Silence::Held | Silence::Over(_) => continue,
        };
        board.adopt(Adopted {
            key,
            opened_at: rfc3339(start.stamp.wall_ms),
            attachments: open.log.attachments,
            silent_for: open.silent_for,
            waiting_for,
            line: format!("session {} kept, open since {}", start.opened.session_id, rfc3339(start.stamp.wall_ms)),
        });
    }
}
