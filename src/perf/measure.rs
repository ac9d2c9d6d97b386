//! The two measuring loops.
//!
//! A sender laid out for one kind of message comes in, counts and times go
//! out. The loops allocate nothing and look at the clock no more than they must.

use std::time::{Duration, Instant};

use crate::verbs::VerbsError;
use crate::verbs::post::Sender;

/// Bytes between two looks at the clock while posting.
const CLOCK_BYTES: u64 = 1 << 20;
/// Polls in vain between two looks at the clock.
const CLOCK_POLLS: u32 = 1024;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// After so many messages.
    pub messages: u64,
    /// After so long.
    pub duration: Duration,
    /// Messages in flight, at most.
    pub depth: u64,
    /// Give up when nothing completes for so long.
    pub stall: Duration,
}

/// What was streamed.
#[derive(Debug, Clone, Copy)]
pub struct Streamed {
    /// Messages completed.
    pub messages: u64,
    /// From the first post to the last completion.
    pub elapsed: Duration,
}

/// Keeps the send queue full until the plan ends, and waits for the rest. One
/// list is sent before the clock starts, to resolve addresses and wake the port.
///
/// # Errors
/// [`VerbsError::Completion`], [`VerbsError::Stalled`], [`VerbsError::Call`].
pub fn stream(sender: &mut Sender<'_>, message_bytes: u32, plan: &Plan) -> Result<Streamed, VerbsError> {
    let list = sender.list() as u64;
    let depth = plan.depth.max(list);
    let lists_per_look = (CLOCK_BYTES / u64::from(message_bytes.max(1)) / list).max(1);
    let mut watch = Watch::new(plan.stall);
    sender.post(sender.list(), 0)?;
    wait(sender, &mut watch)?;

    let (mut posted, mut completed, mut lists, mut more) = (0, 0, 0_u64, plan.messages > 0);
    let start = Instant::now();
    while more || completed < posted {
        while more && posted - completed + list <= depth {
            let count = list.min(plan.messages - posted);
            posted += count;
            sender.post(usize::try_from(count).unwrap_or(1), posted)?;
            lists += 1;
            more = posted < plan.messages && (lists % lists_per_look != 0 || start.elapsed() < plan.duration);
        }
        match sender.poll()? {
            Some(token) => {
                completed = token;
                watch.progress();
            }
            None => watch.idle(sender)?,
        }
    }
    Ok(Streamed { messages: completed, elapsed: start.elapsed() })
}

/// One message at a time; the time of each, in nanoseconds, is pushed to
/// `samples` as far as its capacity goes. The first message is discarded.
///
/// # Errors
/// [`VerbsError::Completion`], [`VerbsError::Stalled`], [`VerbsError::Call`].
pub fn one_by_one(sender: &mut Sender<'_>, samples: &mut Vec<u64>, plan: &Plan) -> Result<(), VerbsError> {
    let mut watch = Watch::new(plan.stall);
    sender.post(1, 0)?;
    wait(sender, &mut watch)?;
    let start = Instant::now();
    let mut before = start;
    while (samples.len() as u64) < plan.messages && samples.len() < samples.capacity() {
        sender.post(1, 0)?;
        wait(sender, &mut watch)?;
        let now = Instant::now();
        samples.push(u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX));
        before = now;
        if now - start >= plan.duration {
            break;
        }
    }
    Ok(())
}

fn wait(sender: &mut Sender<'_>, watch: &mut Watch) -> Result<(), VerbsError> {
    while sender.poll()?.is_none() {
        watch.idle(sender)?;
    }
    watch.progress();
    Ok(())
}

/// Sees that nothing completes any more, without a look at the clock for each poll.
struct Watch {
    stall: Duration,
    since: Instant,
    progressed: bool,
    polls: u32,
}

impl Watch {
    fn new(stall: Duration) -> Self {
        Self { stall, since: Instant::now(), progressed: false, polls: 0 }
    }

    fn progress(&mut self) {
        self.progressed = true;
    }

    fn idle(&mut self, sender: &Sender<'_>) -> Result<(), VerbsError> {
        self.polls += 1;
        if self.polls < CLOCK_POLLS {
            return Ok(());
        }
        self.polls = 0;
        if self.progressed {
            self.progressed = false;
            self.since = Instant::now();
        } else if self.since.elapsed() >= self.stall {
            return Err(sender.stalled(self.stall));
        }
        Ok(())
    }
}
