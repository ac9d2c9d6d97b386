//! libibverbs, opened when the first verb is called.
//!
//! Nothing comes in; a table of functions goes out, or the reason why there is
//! none. The table's types are written here because naming one of the crate's
//! declarations would leave a symbol for the linker, and with it a program that
//! does not start without the library.
#![expect(unsafe_code, reason = "looks functions up in a shared library")]

use std::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use ibverbs_sys as ffi;
use libloading::Library;

use super::error::VerbsError;

/// The name that rdma-core has installed since 2005; its functions are versioned symbols.
const SONAME: &str = "libibverbs.so.1";

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The exported verbs. Those that are inline in C (post, poll) are in the context's table.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            // Keeps the code mapped for as long as the pointers into it.
            _library: Library,
        }

        impl Functions {
            fn load() -> Result<Self, libloading::Error> {
                // SAFETY: the initialisers of rdma-core's own library have no precondition.
                let library = unsafe { Library::new(SONAME) }?;
                $(
                    // SAFETY: the type is that of the declaration in infiniband/verbs.h.
                    let $name = *unsafe { library.get(stringify!($name)) }?;
                )*
                Ok(Self { $($name,)* _library: library })
            }
        }
    };
}

functions! {
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut ffi::ibv_device;
    ibv_free_device_list: fn(*mut *mut ffi::ibv_device);
    ibv_get_device_name: fn(*mut ffi::ibv_device) -> *const c_char;
    ibv_open_device: fn(*mut ffi::ibv_device) -> *mut ffi::ibv_context;
    ibv_close_device: fn(*mut ffi::ibv_context) -> c_int;
    ibv_query_device: fn(*mut ffi::ibv_context, *mut ffi::ibv_device_attr) -> c_int;
    ibv_query_port: fn(*mut ffi::ibv_context, u8, *mut ffi::ibv_port_attr) -> c_int;
    ibv_alloc_pd: fn(*mut ffi::ibv_context) -> *mut ffi::ibv_pd;
    ibv_dealloc_pd: fn(*mut ffi::ibv_pd) -> c_int;
    ibv_reg_mr: fn(*mut ffi::ibv_pd, *mut c_void, usize, c_int) -> *mut ffi::ibv_mr;
    ibv_dereg_mr: fn(*mut ffi::ibv_mr) -> c_int;
    ibv_create_cq: fn(*mut ffi::ibv_context, c_int, *mut c_void, *mut ffi::ibv_comp_channel, c_int) -> *mut ffi::ibv_cq;
    ibv_destroy_cq: fn(*mut ffi::ibv_cq) -> c_int;
    ibv_create_qp: fn(*mut ffi::ibv_pd, *mut ffi::ibv_qp_init_attr) -> *mut ffi::ibv_qp;
    ibv_modify_qp: fn(*mut ffi::ibv_qp, *mut ffi::ibv_qp_attr, c_int) -> c_int;
    ibv_destroy_qp: fn(*mut ffi::ibv_qp) -> c_int;
}

/// The functions, loaded once in the life of the process.
pub(super) fn functions() -> Result<&'static Functions, VerbsError> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    FUNCTIONS
        .get_or_init(|| Functions::load().map_err(|error| reason(&error)))
        .as_ref()
        .map_err(|reason| VerbsError::Library { reason: reason.clone() })
}

/// What the loader said: it is the source of the error, which by itself says only that it failed.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
