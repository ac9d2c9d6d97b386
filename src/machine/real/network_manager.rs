//! Has NetworkManager read its profiles and settings, and waits until no device is on its way.
//!
//! What was active stays active: a profile that changed takes effect the next
//! time it is activated, and netlink corrects the link until then.

use std::collections::BTreeSet;

use zbus::{Message, OwnedObjectPath};

use super::bus::{Bus, NETWORK_MANAGER, PROFILES, refused};
use super::reload::settle;
use crate::machine::MachineError;

const DEVICE_INTERFACE: &str = "org.freedesktop.NetworkManager.Device";

/// `NM_MANAGER_RELOAD_FLAG_CONF`: NetworkManager.conf and conf.d, not DNS.
const CONF: u32 = 1;

/// Reads settings first: one of them lets a profile be activated without carrier.
pub(super) fn reload(bus: &Bus) -> Result<(), MachineError> {
    bus.runtime.block_on(async {
        if !bus.is_running(NETWORK_MANAGER).await? {
            return Ok(());
        }
        let before = on_their_way(bus).await?;
        let mut changes = bus.signals(NETWORK_MANAGER, DEVICE_INTERFACE, "StateChanged").await?;
        bus.call(NETWORK_MANAGER, "Reload", &(CONF,)).await?;
        bus.call(PROFILES, "ReloadConnections", &()).await?;
        let waiting = on_their_way(bus).await?.difference(&before).cloned().collect();
        settle(NETWORK_MANAGER, waiting, &mut changes, new_state).await
    })
}

async fn on_their_way(bus: &Bus) -> Result<BTreeSet<String>, MachineError> {
    let answer = bus.call(NETWORK_MANAGER, "GetDevices", &()).await?;
    let body = answer.body();
    let paths: Vec<OwnedObjectPath> =
        body.deserialize().map_err(|error| refused(NETWORK_MANAGER.shown, "GetDevices", error))?;
    let mut devices = BTreeSet::new();
    for path in paths {
        let state: Option<u32> = bus.property(NETWORK_MANAGER, path.as_str(), DEVICE_INTERFACE, "State").await;
        if state.is_some_and(is_on_its_way) {
            devices.insert(path.to_string());
        }
    }
    Ok(devices)
}

/// The device that a signal is about, and whether it is on its way now.
fn new_state(signal: &Message) -> Option<(String, bool)> {
    let body = signal.body();
    let (state, _, _): (u32, u32, u32) = body.deserialize().ok()?;
    Some((signal.header().path()?.to_string(), is_on_its_way(state)))
}

/// `NMDeviceState`: from prepare (40) to secondaries (90), and deactivating (110).
fn is_on_its_way(state: u32) -> bool {
    matches!(state, 40..=90 | 110)
}
