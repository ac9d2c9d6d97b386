//! The system's D-Bus: calls with a deadline, and signals to wait for.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::{Connection, MatchRule, Message, MessageStream};

use crate::machine::MachineError;

/// How long a service may take to answer a call. A reload of systemd with many units takes seconds.
const CALL_DEADLINE: Duration = Duration::from_secs(60);

/// A service and the object of it that is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Service<'a> {
    /// What to call it in a message.
    pub(super) shown: &'static str,
    pub(super) name: &'static str,
    pub(super) path: &'a str,
    pub(super) interface: &'static str,
}

/// systemd's manager.
pub(super) const SYSTEMD: Service<'static> = Service {
    shown: "systemd",
    name: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// systemd-networkd's manager.
pub(super) const NETWORKD: Service<'static> = Service {
    shown: "systemd-networkd",
    name: "org.freedesktop.network1",
    path: "/org/freedesktop/network1",
    interface: "org.freedesktop.network1.Manager",
};

/// NetworkManager.
pub(super) const NETWORK_MANAGER: Service<'static> = Service {
    shown: "NetworkManager",
    name: "org.freedesktop.NetworkManager",
    path: "/org/freedesktop/NetworkManager",
    interface: "org.freedesktop.NetworkManager",
};

/// NetworkManager's profiles.
pub(super) const PROFILES: Service<'static> = Service {
    path: "/org/freedesktop/NetworkManager/Settings",
    interface: "org.freedesktop.NetworkManager.Settings",
    ..NETWORK_MANAGER
};

/// The system's message bus.
pub(super) struct Bus {
    pub(super) runtime: Arc<Runtime>,
    connection: Connection,
    /// systemd sends signals only while somebody has asked it to, and refuses to be asked twice.
    subscribed: Cell<bool>,
}

impl Bus {
    /// Connects.
    pub(super) fn open(runtime: Arc<Runtime>) -> Result<Self, MachineError> {
        let building = zbus::connection::Builder::system().method_timeout(CALL_DEADLINE).build();
        let connection = runtime.block_on(building).map_err(|error| refused("the system's D-Bus", "connect", error))?;
        Ok(Self { runtime, connection, subscribed: Cell::new(false) })
    }

    /// Calls a method.
    pub(super) async fn call<B>(&self, service: Service<'_>, method: &str, body: &B) -> Result<Message, MachineError>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let Service { name, path, interface, .. } = service;
        let answer = self.connection.call_method(Some(name), path, Some(interface), method, body).await;
        answer.map_err(|error| refused(service.shown, method, error))
    }

    /// Reads a property of the object at `path`.
    pub(super) async fn property<T>(
        &self,
        service: Service<'_>,
        path: &str,
        interface: &str,
        property: &str,
    ) -> Option<T>
    where
        T: TryFrom<zbus::OwnedVariant>,
    {
        let body = (interface, property);
        let properties = Some("org.freedesktop.DBus.Properties");
        let answer = self.connection.call_method(Some(service.name), path, properties, "Get", &body).await.ok()?;
        answer.body().deserialize::<zbus::OwnedVariant>().ok()?.try_into().ok()
    }

    /// The signals called `member` that the service sends from `path` or below.
    pub(super) async fn signals(
        &self,
        service: Service<'_>,
        interface: &str,
        member: &str,
    ) -> Result<MessageStream, MachineError> {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender(service.name)
            .path_namespace(service.path)
            .interface(interface)
            .member(member)
            .build();
        let stream = match rule {
            Ok(rule) => MessageStream::for_match_rule(rule, &self.connection, None).await,
            Err(error) => Err(error),
        };
        stream.map_err(|error| refused(service.shown, "send signals", error))
    }

    /// The signals called `member` of systemd's units and jobs.
    pub(super) async fn systemd_signals(&self, interface: &str, member: &str) -> Result<MessageStream, MachineError> {
        let signals = self.signals(SYSTEMD, interface, member).await?;
        if !self.subscribed.get() {
            self.call(SYSTEMD, "Subscribe", &()).await?;
            self.subscribed.set(true);
        }
        Ok(signals)
    }

    /// Whether somebody answers to the service's name now: asking must not start it.
    pub(super) async fn is_running(&self, service: Service<'_>) -> Result<bool, MachineError> {
        let asked = async {
            let bus = DBusProxy::new(&self.connection).await?;
            Ok::<bool, zbus::Error>(bus.name_has_owner(BusName::try_from(service.name)?).await?)
        };
        asked.await.map_err(|error| refused("the system's D-Bus", "say who is there", error))
    }
}

/// The error for a service that did not do what it was asked.
pub(super) fn refused(
    service: &'static str,
    operation: impl Into<String>,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> MachineError {
    MachineError::Bus { service, operation: operation.into(), source: error.into() }
}
