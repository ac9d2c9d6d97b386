//! The worker's side: requests come in as lines, replies go out as lines.
//!
//! It ends with `close` or with the end of its input; a request that fails is
//! answered with an error and the worker goes on.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::counters;
use super::super::model::{Fault, Reply, Request};
use super::super::session::{Connected, Opened, SessionError};
use crate::name::DeviceName;
use crate::verbs::VerbsError;

/// How far the conversation has come.
enum State {
    Idle,
    Opened(Opened),
    Connected(Connected),
}

/// Serves requests until the input ends.
///
/// # Errors
/// Only if the input can't be read or the output not be written.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    raise_memlock();
    let mut state = State::Idle;
    let mut port = None;
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let reply = match serde_json::from_str(&line) {
            Ok(request) => answer(&mut state, &mut port, request),
            Err(error) => refuse(format!("not a request: {error}")),
        };
        serde_json::to_writer(&mut output, &reply)?;
        output.write_all(b"\n")?;
        output.flush()?;
        if reply == (Reply::Closed {}) {
            break;
        }
    }
    Ok(())
}

fn answer(state: &mut State, port: &mut Option<(DeviceName, u8)>, request: Request) -> Reply {
    match (request, std::mem::replace(state, State::Idle)) {
        (Request::Open(open), _) => {
            *port = Some((open.device.clone(), open.port));
            match Opened::open(&open) {
                Ok(opened) => {
                    let reply = Reply::Endpoint(opened.endpoint().clone());
                    *state = State::Opened(opened);
                    reply
                }
                Err(error) => fault(&error),
            }
        }
        (Request::Connect(peer), State::Opened(opened)) => match opened.connect(peer) {
            Ok(connected) => {
                *state = State::Connected(connected);
                Reply::Ready {}
            }
            Err(error) => fault(&error),
        },
        (Request::Run(run), State::Connected(mut connected)) => match connected.run(&run) {
            Ok(outcome) => {
                *state = State::Connected(connected);
                Reply::Result(outcome)
            }
            Err(error) => {
                // A queue pair that saw an error is of no further use; one that was asked too much is.
                if !matches!(error, SessionError::Verbs(_)) {
                    *state = State::Connected(connected);
                }
                fault(&error)
            }
        },
        (Request::Check(check), State::Connected(mut connected)) => {
            let checked = connected.check(&check);
            *state = State::Connected(connected);
            Reply::Checked(checked)
        }
        (Request::Counters {}, before) => {
            *state = before;
            read_counters(port.as_ref())
        }
        (Request::Close {}, before) => {
            drop(before);
            Reply::Closed {}
        }
        (Request::Connect(_), before) => {
            *state = before;
            refuse("`connect` comes once, after `open`".to_owned())
        }
        (Request::Run(_) | Request::Check(_), before) => {
            *state = before;
            refuse("`run` and `check` come after `connect`".to_owned())
        }
    }
}

fn read_counters(port: Option<&(DeviceName, u8)>) -> Reply {
    let Some((device, port)) = port else {
        return refuse("`counters` comes after `open`".to_owned());
    };
    match counters::read(Path::new("/sys"), device, *port) {
        Ok(snapshot) => Reply::Counters(snapshot),
        Err(error) => fault(&SessionError::from(error)),
    }
}

fn refuse(cause: String) -> Reply {
    Reply::Error(Fault { causes: vec![cause], peer_lost: false })
}

fn fault(error: &SessionError) -> Reply {
    let mut causes = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    let peer_lost = matches!(error, SessionError::Verbs(verbs) if VerbsError::is_peer_lost(verbs));
    Reply::Error(Fault { causes, peer_lost })
}

/// Memory is pinned: take all that the hard limit gives. A refusal shows when memory is registered.
fn raise_memlock() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_MEMLOCK)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_MEMLOCK, hard, hard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converse(requests: &str) -> Vec<Reply> {
        let mut output = Vec::new();
        serve(requests.as_bytes(), &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn first_cause(reply: &Reply) -> &str {
        match reply {
            Reply::Error(fault) => &fault.causes[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_out_of_order_are_refused_and_the_worker_goes_on() {
        let replies = converse(
            "{\"run\":{\"test\":\"read-lat\",\"size\":2}}\n{\"counters\":{}}\nnonsense\n\n{\"close\":{}}\n{\"close\":{}}\n",
        );
        assert_eq!(first_cause(&replies[0]), "`run` and `check` come after `connect`");
        assert_eq!(first_cause(&replies[1]), "`counters` comes after `open`");
        assert!(first_cause(&replies[2]).starts_with("not a request: "));
        assert_eq!(replies[3..], [Reply::Closed {}], "and nothing after close");
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let replies = converse("{\"open\":{\"device\":\"mlx5_77\"}}\n");
        let Reply::Error(fault) = &replies[0] else { panic!("{replies:?}") };
        let text = fault.causes.join(": ");
        assert!(text.contains("mlx5_77") || text.contains("libibverbs1"), "{text}");
        assert!(!fault.peer_lost);
    }
}
