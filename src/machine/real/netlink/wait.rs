//! Waits for the interface of an InfiniBand port and gives it its name.
//!
//! The kernel announces each new link; nothing is polled. A driver makes the
//! interface some time after its module is loaded, and udev may rename it then.

use std::time::Duration;

use futures_util::StreamExt;
use netlink_packet_route::link::LinkAttribute;
use nix::errno::Errno;
use rtnetlink::MulticastGroup;

use super::set::{errno_of, refused};
use super::{Link, Netlink, unreachable};
use crate::machine::MachineError;
use crate::name::IfName;
use crate::rdma::Guid;
use crate::state::{Object, State};

/// How long a driver may take to make its interface: mlx5 firmware takes up to about 10 s.
const INTERFACE_DEADLINE: Duration = Duration::from_secs(30);

impl Netlink {
    /// Waits until the port has its interface, and renames that to `name`.
    pub(super) fn name_interface(&self, guid: Guid, name: &IfName) -> Result<(), MachineError> {
        let link = self.await_interface(guid)?;
        if link.name == *name {
            return Ok(());
        }
        let object = Object::Interface { guid };
        self.rename(&link, name).map_err(|error| refused(&object, &State::Named { name: name.clone() }, error))
    }

    fn rename(&self, link: &Link, name: &IfName) -> std::io::Result<()> {
        let rename = || {
            self.change_link(link.index, |message| {
                message.attributes.push(LinkAttribute::IfName(name.to_string()));
            })
        };
        match rename() {
            // Before Linux 6.0 a link that is up keeps its name.
            Err(error) if link.up && errno_of(&error) == Some(Errno::EBUSY) => {
                self.set_up(link.index, false)?;
                let renamed = rename();
                let up_again = self.set_up(link.index, true);
                renamed.and(up_again)
            }
            other => other,
        }
    }

    fn await_interface(&self, guid: Guid) -> Result<Link, MachineError> {
        let timeout = || MachineError::Timeout {
            what: format!("the network interface of port {guid}"),
            seconds: INTERFACE_DEADLINE.as_secs(),
        };
        self.runtime.block_on(async {
            let found = tokio::time::timeout(INTERFACE_DEADLINE, self.interface(guid)).await;
            found.unwrap_or_else(|_| Err(timeout()))
        })
    }

    async fn interface(&self, guid: Guid) -> Result<Link, MachineError> {
        let of_port = |links: Vec<Link>| links.into_iter().find(|link| link.port_guid() == Some(guid));
        if let Some(link) = of_port(self.links_async().await?) {
            return Ok(link);
        }
        // Listen first, then look: what comes in between is announced.
        let listening = rtnetlink::new_multicast_connection(&[MulticastGroup::Link]);
        let (connection, _handle, mut news) = listening.map_err(|error| unreachable(&error))?;
        let listener = tokio::spawn(connection);
        let found = loop {
            // Any news, a lost message included, is a reason to look at the whole: links are few.
            match self.links_async().await.map(of_port) {
                Ok(Some(link)) => break Ok(link),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
            if news.next().await.is_none() {
                break Err(MachineError::Netlink("it stopped announcing links".to_owned()));
            }
        };
        listener.abort();
        found
    }
}
