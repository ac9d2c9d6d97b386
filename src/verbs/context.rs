//! An open device, its ports and its protection domain.
//!
//! A device's name comes in, an open handle and what the port says of itself
//! go out. Nothing is changed on the device.
#![expect(unsafe_code, reason = "calls libibverbs")]

use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use ibverbs_sys as ffi;

use super::error::VerbsError;
use super::library::{Functions, functions};
use crate::name::DeviceName;

/// What a port is wired to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLayer {
    /// Addressed by LID.
    Infiniband,
    /// RoCE: addressed by GID.
    Ethernet,
}

impl LinkLayer {
    /// The word that `ibstat` prints.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Infiniband => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }
}

/// A port, as `ibv_query_port` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Its link layer.
    pub link_layer: LinkLayer,
    /// Its LID; 0 on Ethernet.
    pub lid: u16,
    /// The path MTU in force, as `enum ibv_mtu`: 1 is 256 bytes, 5 is 4096.
    pub active_mtu: u32,
}

/// How many READs a device keeps in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// As the one that reads.
    pub initiator: u8,
    /// As the one that is read.
    pub responder: u8,
}

/// An open device. Everything made from it keeps it open.
pub struct Context {
    raw: NonNull<ffi::ibv_context>,
    device: DeviceName,
    functions: &'static Functions,
}

impl Context {
    /// Opens a device by its name.
    ///
    /// # Errors
    /// [`VerbsError::Library`], [`VerbsError::NoDevice`], [`VerbsError::Call`].
    pub fn open(device: &DeviceName) -> Result<Rc<Self>, VerbsError> {
        let functions = functions()?;
        let mut count: c_int = 0;
        // SAFETY: `count` is valid for the call.
        let list = unsafe { (functions.ibv_get_device_list)(&raw mut count) };
        if list.is_null() {
            return Err(call("ibv_get_device_list", device, io::Error::last_os_error()));
        }
        let mut present = Vec::new();
        let mut opened = None;
        for at in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the list has `count` entries, alive until it is freed.
            let entry = unsafe { *list.add(at) };
            // SAFETY: the name is a NUL-terminated string inside of the device.
            let name = unsafe { CStr::from_ptr((functions.ibv_get_device_name)(entry)) }.to_string_lossy();
            if name == device.as_str() {
                // SAFETY: `entry` is a device of the list.
                let raw = unsafe { (functions.ibv_open_device)(entry) };
                opened = Some(NonNull::new(raw).ok_or_else(io::Error::last_os_error));
            }
            present.push(name.into_owned());
        }
        // SAFETY: the list came from ibv_get_device_list; an open device outlives it.
        unsafe { (functions.ibv_free_device_list)(list) };
        match opened {
            Some(Ok(raw)) => Ok(Rc::new(Self { raw, device: device.clone(), functions })),
            Some(Err(source)) => Err(call("ibv_open_device", device, source)),
            None => Err(VerbsError::NoDevice { device: device.clone(), present }),
        }
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &DeviceName {
        &self.device
    }

    /// A port that carries traffic.
    ///
    /// # Errors
    /// [`VerbsError::PortNotActive`], [`VerbsError::Call`].
    pub fn active_port(&self, port: u8) -> Result<Port, VerbsError> {
        let mut attr = ffi::ibv_port_attr::default();
        // SAFETY: the exported function fills the older, shorter form of the struct,
        // a prefix of this one, in which the link layer is.
        let result = unsafe { (self.functions.ibv_query_port)(self.raw.as_ptr(), port, &raw mut attr) };
        self.check("ibv_query_port", result)?;
        let state = match attr.state {
            1 => "DOWN",
            2 => "INIT",
            3 => "ARMED",
            4 | 5 => "ACTIVE",
            _ => "in an unknown state",
        };
        if state != "ACTIVE" {
            return Err(VerbsError::PortNotActive { device: self.device.clone(), port, state });
        }
        let ethernet = u32::from(attr.link_layer) == ffi::IBV_LINK_LAYER_ETHERNET;
        Ok(Port {
            link_layer: if ethernet { LinkLayer::Ethernet } else { LinkLayer::Infiniband },
            lid: attr.lid,
            active_mtu: attr.active_mtu,
        })
    }

    /// How many READs may be in flight.
    ///
    /// # Errors
    /// [`VerbsError::Call`].
    pub fn read_limits(&self) -> Result<ReadLimits, VerbsError> {
        let mut attr = ffi::ibv_device_attr::default();
        // SAFETY: `attr` is a whole ibv_device_attr.
        let result = unsafe { (self.functions.ibv_query_device)(self.raw.as_ptr(), &raw mut attr) };
        self.check("ibv_query_device", result)?;
        let limit = |n: c_int| u8::try_from(n.clamp(1, 128)).unwrap_or(1);
        Ok(ReadLimits { initiator: limit(attr.max_qp_init_rd_atom), responder: limit(attr.max_qp_rd_atom) })
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.functions
    }

    pub(super) fn raw(&self) -> NonNull<ffi::ibv_context> {
        self.raw
    }

    /// The verbs that return an errno or -1.
    pub(super) fn check(&self, verb: &'static str, result: c_int) -> Result<(), VerbsError> {
        match result {
            0 => Ok(()),
            -1 => Err(call(verb, &self.device, io::Error::last_os_error())),
            errno => Err(call(verb, &self.device, io::Error::from_raw_os_error(errno))),
        }
    }

    /// The verbs that return a pointer.
    pub(super) fn non_null<T>(&self, verb: &'static str, raw: *mut T) -> Result<NonNull<T>, VerbsError> {
        NonNull::new(raw).ok_or_else(|| call(verb, &self.device, io::Error::last_os_error()))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: opened by us, closed once; whatever was made from it holds a reference.
        unsafe { (self.functions.ibv_close_device)(self.raw.as_ptr()) };
    }
}

fn call(verb: &'static str, device: &DeviceName, source: io::Error) -> VerbsError {
    VerbsError::Call { verb, device: device.clone(), source }
}

/// A protection domain: memory and queue pairs of one work together.
pub struct Pd {
    raw: NonNull<ffi::ibv_pd>,
    context: Rc<Context>,
}

impl Pd {
    /// Allocates one on the device.
    ///
    /// # Errors
    /// [`VerbsError::Call`].
    pub fn allocate(context: &Rc<Context>) -> Result<Rc<Self>, VerbsError> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.functions.ibv_alloc_pd)(context.raw.as_ptr()) };
        let raw = context.non_null("ibv_alloc_pd", raw)?;
        Ok(Rc::new(Self { raw, context: Rc::clone(context) }))
    }

    /// The device it belongs to.
    #[must_use]
    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    pub(super) fn raw(&self) -> NonNull<ffi::ibv_pd> {
        self.raw
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: allocated by us, freed once; regions and queue pairs hold a reference.
        unsafe { (self.context.functions.ibv_dealloc_pd)(self.raw.as_ptr()) };
    }
}
