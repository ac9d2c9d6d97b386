//! The kernel's links and addresses, over netlink.
//!
//! Objects and states come in; one dump of links and one of addresses answer for
//! any number of objects. A change is one request, refused with the kernel's own
//! words. Nothing here polls: what is awaited is announced by the kernel.

mod address;
mod kernel_error;
mod link;
mod route;
mod set;
#[cfg(test)]
mod tests;
mod view;
mod wait;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use rtnetlink::Handle;
use rtnetlink::sys::AsyncSocket;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub(crate) use self::address::Address;
pub(crate) use self::kernel_error::KernelError;
pub(crate) use self::link::Link;
use crate::machine::MachineError;
use crate::state::{Object, State};

/// `NLM_F_DUMP_INTR`: the kernel's list changed while it was read.
const DUMP_INTERRUPTED: u16 = 0x10;

/// How often a list that changes while it is read is read again.
const DUMP_ATTEMPTS: u32 = 5;

/// A netlink socket for links, addresses and routes.
pub(crate) struct Netlink {
    runtime: Arc<Runtime>,
    handle: Handle,
    /// Ends when its socket fails.
    connection: JoinHandle<()>,
}

/// The runtime that netlink and D-Bus share: one thread, the caller's.
pub(crate) fn runtime() -> Result<Runtime, MachineError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    built.map_err(|error| unreachable(&error))
}

/// Whether an object's state is seen through netlink.
pub(super) fn answers_for(object: &Object) -> bool {
    object.link().is_some() || matches!(object, Object::Interface { .. })
}

impl Netlink {
    /// Opens a socket.
    pub(crate) fn open(runtime: Arc<Runtime>) -> Result<Self, MachineError> {
        let opened = {
            let _entered = runtime.enter();
            rtnetlink::new_connection()
        };
        let (mut connection, handle, _) = opened.map_err(|error| unreachable(&error))?;
        // What the kernel says beside the error number; kernels before 4.12 say nothing.
        let _ = connection.socket_mut().socket_mut().set_ext_ack(true);
        let connection = runtime.spawn(connection);
        Ok(Self { runtime, handle, connection })
    }

    /// The states of the links and addresses in `scope`.
    pub(super) fn observe(&self, scope: &[Object]) -> Result<BTreeMap<Object, State>, MachineError> {
        let mut links = self.links()?;
        let named = |link: &Link| scope.iter().any(|object| object.link() == Some(&link.name));
        for link in links.iter_mut().filter(|link| named(link)) {
            link.mode_from_sysfs_if_unsaid();
        }
        if !links.iter().any(named) {
            return Ok(view::states(scope, &links, &[], &[]));
        }
        Ok(view::states(scope, &links, &self.addresses()?, &self.routes()?))
    }

    /// All links.
    pub(crate) fn links(&self) -> Result<Vec<Link>, MachineError> {
        self.runtime.block_on(self.links_async())
    }

    async fn links_async(&self) -> Result<Vec<Link>, MachineError> {
        let mut message = LinkMessage::default();
        // Counters are most of what a dump of many links would carry.
        message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
        let found = self.dump(RouteNetlinkMessage::GetLink(message)).await?;
        let link = |message| match message {
            RouteNetlinkMessage::NewLink(message) => Link::parse(&message),
            _ => None,
        };
        Ok(found.into_iter().filter_map(link).collect())
    }

    /// All addresses of all links.
    pub(crate) fn addresses(&self) -> Result<Vec<Address>, MachineError> {
        let found = self.runtime.block_on(self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default())))?;
        let address = |message| match message {
            RouteNetlinkMessage::NewAddress(message) => Address::parse(&message),
            _ => None,
        };
        Ok(found.into_iter().filter_map(address).collect())
    }

    async fn dump(&self, message: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>, MachineError> {
        for _ in 0..DUMP_ATTEMPTS {
            let (found, interrupted) = self.exchange(message.clone(), NLM_F_REQUEST | NLM_F_DUMP).await?;
            if !interrupted {
                return Ok(found);
            }
        }
        Err(MachineError::Netlink(format!("what it lists changed {DUMP_ATTEMPTS} times while it was read")))
    }

    /// Asks for one change, or for one object.
    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> Result<Vec<RouteNetlinkMessage>, RequestError> {
        let exchange = self.exchange(message, NLM_F_REQUEST | NLM_F_ACK | flags);
        Ok(self.runtime.block_on(exchange)?.0)
    }

    async fn exchange(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(Vec<RouteNetlinkMessage>, bool), RequestError> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = flags;
        let mut answers =
            self.handle.clone().request(request).map_err(|error| RequestError::Lost(error.to_string()))?;
        let (mut found, mut interrupted) = (Vec::new(), false);
        while let Some(answer) = answers.next().await {
            interrupted |= answer.header.flags & DUMP_INTERRUPTED != 0;
            match answer.payload {
                NetlinkPayload::InnerMessage(message) => found.push(message),
                NetlinkPayload::Error(error) if error.code.is_some() => {
                    return Err(RequestError::Kernel(KernelError::parse(answer.header.flags, &error)));
                }
                NetlinkPayload::Overrun(_) => return Err(RequestError::Lost("its answers overran".to_owned())),
                _ => {}
            }
        }
        // The answers end in the same way when all have come and when no more can come:
        // a socket that failed must not look like a kernel without links.
        if self.connection.is_finished() {
            return Err(RequestError::Lost("its socket failed".to_owned()));
        }
        Ok((found, interrupted))
    }
}

/// Why a request has no answer.
#[derive(Debug)]
enum RequestError {
    /// The kernel refused it.
    Kernel(KernelError),
    /// The socket failed.
    Lost(String),
}

impl From<RequestError> for MachineError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Kernel(error) => Self::Netlink(error.to_string()),
            RequestError::Lost(why) => Self::Netlink(why),
        }
    }
}

fn unreachable(error: &io::Error) -> MachineError {
    MachineError::Netlink(error.to_string())
}
