//! The node's end of the protocol: reads calls, does them, writes frames.
//!
//! It ends with its input, so that a lost connection leaves nothing running.
//! Measuring is done by child processes: one that hangs in the kernel holds
//! neither this process nor its SSH session.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use super::protocol::{Call, Frame, MAX_LINE_BYTES, Reply, Request, VERSION};
use super::session::Session;
use super::signals::Held;
use crate::apply::Rollback;
use crate::exit;
use crate::perf;
use crate::perf::model::{Fault, Request as Ask};
use crate::perf::worker::{Worker, WorkerError};
use crate::spec::Look;
use crate::verify;

/// How long a worker has for one request: longer than any measurement here.
const MEASURE_DEADLINE: Duration = Duration::from_secs(50);

/// Serves calls from `input` until it ends.
///
/// # Errors
/// When the input cannot be read or the output not written.
pub fn serve(session: &mut Session, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    send(&mut output, &Frame::Hello { protocol: VERSION, selvedge: env!("CARGO_PKG_VERSION").to_owned(), host })?;
    let mut workers = BTreeMap::new();
    let mut input = input;
    let signals = Held::hold()?;
    loop {
        let mut line = Vec::new();
        // Only between calls may a signal end this process.
        let read = signals.let_through(|| input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line))?;
        if read? == 0 {
            return Ok(());
        }
        let frame = match serde_json::from_slice::<Call>(&line) {
            Ok(Call { id, request }) => answer(session, &mut workers, id, request, &mut output)?,
            Err(error) => {
                send(
                    &mut output,
                    &Frame::Error { id: 0, message: format!("not a call: {error}"), code: exit::FAILED },
                )?;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the controller sent something that is no call",
                ));
            }
        };
        send(&mut output, &frame)?;
    }
}

fn send(output: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

fn answer(
    session: &mut Session,
    workers: &mut BTreeMap<u32, Worker>,
    id: u64,
    request: Request,
    output: &mut impl Write,
) -> io::Result<Frame> {
    let mut broken = None;
    let mut watch = |change: &crate::state::Change| {
        let progress = Frame::Progress { id, change: Box::new(change.clone()) };
        if broken.is_none() {
            // A controller that is gone must not stop an apply half way.
            broken = send(output, &progress).err();
        }
    };
    let done = match request {
        Request::Facts {} => session.facts().map(Reply::Facts),
        Request::Plan { spec, node } => session.plan(&spec, &node).map(Reply::Plan),
        Request::Apply { spec, node, confirm_seconds } => {
            let confirm = confirm_seconds.map(Duration::from_secs);
            session.apply(&spec, &node, confirm, &mut watch).map(Reply::Plan)
        }
        Request::Confirm {} => session.confirm().map(|()| Reply::Done {}),
        Request::RollBack { allow_cut } => match session.roll_back(allow_cut) {
            Ok((_, rollback @ Rollback::Failed { .. })) => {
                return Ok(Frame::Error { id, message: rollback.to_string(), code: exit::TORN });
            }
            other => other.map(|(which, rollback)| Reply::RolledBack { which, saved: rollback.saved().to_vec() }),
        },
        Request::Check { spec, node } => session.check(&spec, &node).map(Reply::Checks),
        Request::Managers { spec, node, fabric, guids } => {
            session.managers(&spec, &node, &fabric, &guids).map(Reply::Managers)
        }
        Request::Ping(ping) => Ok(Reply::Ping(verify::ping::run(&ping))),
        Request::Perf { worker, request } => Ok(Reply::Perf(measure(workers, worker, request))),
    };
    Ok(match done {
        Ok(reply) => Frame::Reply { id, reply: Box::new(reply) },
        Err(error) => Frame::Error { id, message: error.message(Look::Plain), code: error.code() },
    })
}

/// Hands a request to a worker; `open` starts it and `close` lets it go. A worker that failed is let go as well.
fn measure(workers: &mut BTreeMap<u32, Worker>, id: u32, request: perf::model::Request) -> perf::model::Reply {
    let ends = matches!(request, Ask::Close {});
    if matches!(request, Ask::Open(_)) {
        match Worker::spawn() {
            Ok(worker) => {
                workers.insert(id, worker);
            }
            Err(error) => return fault(&error),
        }
    }
    let Some(worker) = workers.get_mut(&id) else {
        return perf::model::Reply::Error(Fault {
            causes: vec!["no such measurement is open".into()],
            peer_lost: false,
        });
    };
    let reply = worker.request(&request, MEASURE_DEADLINE);
    if ends || reply.is_err() {
        workers.remove(&id);
    }
    reply.unwrap_or_else(|error| fault(&error))
}

fn fault(error: &WorkerError) -> perf::model::Reply {
    perf::model::Reply::Error(Fault { causes: exit::causes(error), peer_lost: error.is_peer_lost() })
}
