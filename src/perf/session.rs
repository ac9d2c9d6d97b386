//! One end of a measurement: device, memory, queue pair.
//!
//! The requests of [`super::model`] come in as values, their replies go out.
//! How they travel is the business of [`super::worker`].

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use thiserror::Error;

use super::counters::{self, CountersError};
use super::measure::{self, Plan};
use super::model::{self, Check, Endpoint, Measured, Open, Outcome, Run, Test};
use super::pattern::{self, Checked};
use super::snapshot::Snapshot;
use super::stats::Latency;
use super::units::Bandwidth;
use crate::verbs::VerbsError;
use crate::verbs::context::{Context, LinkLayer, Pd};
use crate::verbs::gid;
use crate::verbs::memory::{Mr, RemoteSpan};
use crate::verbs::post::{Operation, Sender};
use crate::verbs::qp::{Init, Peer, Qp, Route, Rts};

const SYSFS: &str = "/sys";
/// The parts of the memory start at pages.
const PAGE: usize = 4096;
/// READs in flight, at most: what ConnectX has.
const MOST_READS: u8 = 16;
/// Latency samples kept, at most: 8 MB.
const MOST_SAMPLES: u64 = 1 << 20;
/// A bandwidth test without a limit.
const DEFAULT_DURATION: Duration = Duration::from_secs(2);

/// Why a request could not be served.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A verb failed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The counters could not be read.
    #[error(transparent)]
    Counters(#[from] CountersError),
    /// A message of more bytes than either end has memory for.
    #[error("a message of {asked} bytes: this end was opened for {own}, its peer for {peer}")]
    Size {
        /// What was asked for.
        asked: u32,
        /// What this end has.
        own: u32,
        /// What the peer has.
        peer: u32,
    },
    /// More work requests in flight than the queue holds.
    #[error("{asked} work requests in flight: the send queue was opened for {opened}")]
    Depth {
        /// What was asked for.
        asked: u32,
        /// What was opened.
        opened: u32,
    },
    /// Nothing to measure.
    #[error("the measurement ended without a sample: no iterations or no duration")]
    NoSample,
}

/// Everything but the queue pair.
struct Port {
    open: Open,
    context: Rc<Context>,
    memory: Mr,
    own: Endpoint,
    link_layer: LinkLayer,
}

/// A queue pair that waits for its peer.
pub struct Opened {
    // Before the memory: a queue pair is destroyed first.
    qp: Qp<Init>,
    port: Port,
}

/// A connected queue pair.
pub struct Connected {
    qp: Qp<Rts>,
    port: Port,
    peer: Endpoint,
}

impl Opened {
    /// Opens the device, registers memory, fills it with the pattern, makes a queue pair.
    ///
    /// # Errors
    /// [`SessionError::Verbs`].
    pub fn open(open: &Open) -> Result<Self, SessionError> {
        let sysfs = Path::new(SYSFS);
        let context = Context::open(&open.device)?;
        let port = context.active_port(open.port)?;
        let chosen = match port.link_layer {
            LinkLayer::Infiniband => None,
            LinkLayer::Ethernet => {
                Some(gid::select(sysfs, &open.device, open.port, open.subnet).map_err(VerbsError::from)?)
            }
        };
        let pkey_index = match open.pkey {
            None => 0,
            Some(pkey) => gid::pkey_index(sysfs, &open.device, open.port, pkey)
                .map_err(VerbsError::from)?
                .map_err(|table| VerbsError::NoPkey { device: open.device.clone(), port: open.port, pkey, table })?,
        };
        let pd = Pd::allocate(&context)?;
        let mut memory = Mr::allocate(&pd, 2 * part(open.size))?;
        let seed = random();
        memory.fill(0, pattern::words(seed).take(part(open.size) / 8));
        let qp = Qp::create(&pd, open.port, pkey_index, open.depth.max(1))?;
        let own = Endpoint {
            qpn: qp.number(),
            psn: u32::try_from(random() & 0xff_ffff).unwrap_or(0),
            lid: port.lid,
            gid: chosen.as_ref().map(|entry| entry.gid),
            gid_index: chosen.as_ref().map(|entry| entry.index),
            mtu: 128 << port.active_mtu.clamp(1, 5),
            reads: context.read_limits()?.responder.min(MOST_READS),
            addr: memory.addr(),
            rkey: memory.rkey(),
            size: open.size,
            seed,
        };
        let port = Port { open: open.clone(), context, memory, own, link_layer: port.link_layer };
        Ok(Self { qp, port })
    }

    /// What the peer must know.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.port.own
    }

    /// Takes the queue pair to RTS, connected with the peer's.
    ///
    /// # Errors
    /// [`SessionError::Verbs`].
    pub fn connect(self, peer: Endpoint) -> Result<Connected, SessionError> {
        let Self { qp, port } = self;
        let route = route(&port, &peer)?;
        let reads_out = port.context.read_limits()?.initiator.min(peer.reads).min(MOST_READS);
        let mtu = port.own.mtu.min(peer.mtu).clamp(256, 4096).ilog2() - 7;
        let sl = port.open.sl;
        let to = Peer { qpn: peer.qpn, psn: peer.psn, route, sl, mtu, reads_in: port.own.reads };
        let qp = qp.ready_to_receive(&to)?.ready_to_send(port.own.psn, reads_out)?;
        Ok(Connected { qp, port, peer })
    }
}

impl Connected {
    /// Measures, with the port's counters before and after.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn run(&mut self, run: &Run) -> Result<Outcome, SessionError> {
        let (own, peer, asked) = (self.port.own.size, self.peer.size, run.size);
        if asked > own.min(peer) {
            return Err(SessionError::Size { asked, own, peer });
        }
        if run.depth > self.qp.depth() {
            return Err(SessionError::Depth { asked: run.depth, opened: self.qp.depth() });
        }
        let before = self.port.counters()?;
        let measured = match run.test {
            Test::WriteBw => Measured::WriteBw(self.write_bw(run)?),
            Test::ReadLat => Measured::ReadLat(self.read_lat(run)?),
        };
        Ok(Outcome { measured, before, after: self.port.counters()? })
    }

    /// Compares what arrived, by the peer's WRITEs or our READs, with the
    /// peer's pattern, and clears it. An acknowledged WRITE may still be on its
    /// way to memory for some nanoseconds; a request takes longer to arrive.
    pub fn check(&mut self, check: &Check) -> Checked {
        let arrived = part(self.port.own.size) / 8;
        let checked = pattern::check(self.port.memory.words(arrived), check.seed, check.size);
        self.port.memory.fill(arrived, std::iter::repeat(0));
        checked
    }

    fn write_bw(&self, run: &Run) -> Result<Bandwidth, SessionError> {
        let depth = run.depth.max(1);
        let list = run.post_list.clamp(1, depth) as usize;
        let local = self.port.memory.span(0, run.size as usize)?;
        let remote = RemoteSpan { addr: self.peer.addr + part(self.peer.size) as u64, rkey: self.peer.rkey };
        let mut sender = Sender::new(&self.qp, Operation::Write, local, remote, list)?;
        let streamed = measure::stream(&mut sender, run.size, &plan(run))?;
        if streamed.messages == 0 {
            return Err(SessionError::NoSample);
        }
        let elapsed_ns = u64::try_from(streamed.elapsed.as_nanos()).unwrap_or(u64::MAX);
        Ok(Bandwidth { message_bytes: run.size, messages: streamed.messages, elapsed_ns })
    }

    fn read_lat(&self, run: &Run) -> Result<Latency, SessionError> {
        let local = self.port.memory.span(part(self.port.own.size), run.size as usize)?;
        let remote = RemoteSpan { addr: self.peer.addr, rkey: self.peer.rkey };
        let mut sender = Sender::new(&self.qp, Operation::Read, local, remote, 1)?;
        let plan = plan(run);
        let mut samples = Vec::with_capacity(usize::try_from(plan.messages.min(MOST_SAMPLES)).unwrap_or(0));
        measure::one_by_one(&mut sender, &mut samples, &plan)?;
        Latency::summarise(run.size, &mut samples).ok_or(SessionError::NoSample)
    }
}

impl Port {
    fn counters(&self) -> Result<Snapshot, CountersError> {
        counters::read(Path::new(SYSFS), &self.open.device, self.open.port)
    }
}

fn route(port: &Port, peer: &Endpoint) -> Result<Route, VerbsError> {
    let traffic_class = port.open.traffic_class;
    match (port.link_layer, port.own.gid_index, peer.gid) {
        (LinkLayer::Infiniband, _, None) => Ok(Route::Lid(peer.lid)),
        (LinkLayer::Ethernet, Some(sgid_index), Some(dgid)) => Ok(Route::Gid { sgid_index, dgid, traffic_class }),
        (layer, _, _) => Err(VerbsError::LinkLayers { device: port.open.device.clone(), ours: layer.as_str() }),
    }
}

fn plan(run: &Run) -> Plan {
    let longest = Duration::from_secs(24 * 3600);
    let (messages, duration) = match (run.iterations, run.duration_ms.map(Duration::from_millis), run.test) {
        (None, None, Test::WriteBw) => (u64::MAX, DEFAULT_DURATION),
        (None, None, Test::ReadLat) => (model::DEFAULT_READS, longest),
        (messages, duration, _) => (messages.unwrap_or(u64::MAX), duration.unwrap_or(longest)),
    };
    Plan { messages, duration, depth: u64::from(run.depth), stall: Duration::from_millis(model::STALL_MS) }
}

/// The length of one part of the memory.
fn part(size: u32) -> usize {
    (size.max(1) as usize).next_multiple_of(PAGE)
}

/// Not secret, only different each time: the keys of a hash map are.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
