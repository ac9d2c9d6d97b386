//! Management datagrams as bytes: a query goes in, 256 bytes come out, and the
//! other way round. Nothing here opens a device.
//!
//! Layouts: InfiniBand Architecture Specification 1.7, volume 1, 13.4.3 (MAD
//! header) and 14.2.1 (subnet management packets).

/// The length of a MAD, in bytes.
pub const MAD_BYTES: usize = 256;

/// Management class of subnet management by LID.
pub const CLASS_SUBN_LID: u8 = 0x01;
/// Management class of subnet management by directed route.
pub const CLASS_SUBN_DIRECTED: u8 = 0x81;

/// Attribute: NodeDescription.
pub const ATTR_NODE_DESCRIPTION: u16 = 0x0010;
/// Attribute: NodeInfo.
pub const ATTR_NODE_INFO: u16 = 0x0011;
/// Attribute: SwitchInfo.
pub const ATTR_SWITCH_INFO: u16 = 0x0012;
/// Attribute: PortInfo; the modifier is the port number.
pub const ATTR_PORT_INFO: u16 = 0x0015;
/// Attribute: SMInfo.
pub const ATTR_SM_INFO: u16 = 0x0020;

/// The most hops of a directed route: the path field has 64 entries, entry 0 unused.
pub const MAX_HOPS: usize = 63;

const METHOD_GET: u8 = 0x01;
const METHOD_GET_RESP: u8 = 0x81;
/// The LID that means "by directed route only".
const LID_PERMISSIVE: u16 = 0xffff;

/// One MAD, as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mad(Box<[u8; MAD_BYTES]>);

impl Mad {
    /// A SubnGet by LID.
    #[must_use]
    pub fn subn_get(attribute: u16, modifier: u32, transaction: u32) -> Self {
        let mut mad = Self(Box::new([0; MAD_BYTES]));
        mad.0[0] = 1; // base version
        mad.0[1] = CLASS_SUBN_LID;
        mad.0[2] = 1; // class version
        mad.0[3] = METHOD_GET;
        mad.put(12, &transaction.to_be_bytes());
        mad.put(16, &attribute.to_be_bytes());
        mad.put(20, &modifier.to_be_bytes());
        mad
    }

    /// A SubnGet that leaves by the ports of `path`, one a hop; an empty path
    /// asks the local port. `None` if the path has more than [`MAX_HOPS`] hops.
    #[must_use]
    pub fn subn_get_directed(path: &[u8], attribute: u16, modifier: u32, transaction: u32) -> Option<Self> {
        if path.len() > MAX_HOPS {
            return None;
        }
        let mut mad = Self::subn_get(attribute, modifier, transaction);
        mad.0[1] = CLASS_SUBN_DIRECTED;
        mad.0[7] = u8::try_from(path.len()).ok()?; // hop count; byte 6, the hop pointer, starts at 0
        mad.put(32, &LID_PERMISSIVE.to_be_bytes());
        mad.put(34, &LID_PERMISSIVE.to_be_bytes());
        mad.put(129, path); // initial path at 128, its entry 0 unused
        Some(mad)
    }

    /// A MAD from bytes received; missing bytes are zero.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut mad = Self(Box::new([0; MAD_BYTES]));
        let length = bytes.len().min(MAD_BYTES);
        mad.put(0, &bytes[..length]);
        mad
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// All 256 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; MAD_BYTES] {
        &self.0
    }

    /// The attribute itself: the 64 bytes of SMP data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.0[64..128]
    }

    /// The management class.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.0[1]
    }

    /// The attribute asked for or answered.
    #[must_use]
    pub fn attribute(&self) -> u16 {
        u16::from_be_bytes([self.0[16], self.0[17]])
    }

    /// The status, without the direction bit of a directed route; 0 is success.
    #[must_use]
    pub fn status(&self) -> u16 {
        let status = u16::from_be_bytes([self.0[4], self.0[5]]);
        if self.class() == CLASS_SUBN_DIRECTED { status & 0x7fff } else { status }
    }

    /// The lower half of the transaction identifier: the upper one is the kernel's.
    #[must_use]
    pub fn transaction(&self) -> u32 {
        u32::from_be_bytes([self.0[12], self.0[13], self.0[14], self.0[15]])
    }

    /// Whether this is the answer to `query`.
    #[must_use]
    pub fn answers(&self, query: &Self) -> bool {
        self.0[3] == METHOD_GET_RESP
            && self.class() == query.class()
            && self.transaction() == query.transaction()
            && self.attribute() == query.attribute()
    }
}

/// What a MAD status means, for a message (13.4.7, table 117).
#[must_use]
pub fn status_meaning(status: u16) -> &'static str {
    match status & 0x1f {
        0x00 => "class-specific status",
        0x01 => "busy",
        0x02 => "redirected",
        0x04 => "bad base or class version",
        0x08 => "method not supported",
        0x0c => "method and attribute not supported together: nothing answers this attribute there",
        0x1c => "an invalid value in the attribute or its modifier",
        _ => "reserved status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lid_routed_get_has_the_header_of_the_specification() {
        let mad = Mad::subn_get(ATTR_SM_INFO, 7, 0x0102_0304);
        assert_eq!(mad.bytes()[..4], [1, 0x01, 1, 0x01]);
        assert_eq!(mad.bytes()[12..24], [1, 2, 3, 4, 0, 0x20, 0, 0, 0, 0, 0, 7]);
        assert_eq!((mad.attribute(), mad.transaction(), mad.status()), (ATTR_SM_INFO, 0x0102_0304, 0));
    }

    #[test]
    fn a_directed_get_carries_its_path_and_permissive_lids() {
        let mad = Mad::subn_get_directed(&[1, 17], ATTR_NODE_INFO, 0, 9).unwrap();
        assert_eq!(mad.class(), CLASS_SUBN_DIRECTED);
        assert_eq!(mad.bytes()[6..8], [0, 2]);
        assert_eq!(mad.bytes()[32..36], [0xff; 4]);
        assert_eq!(mad.bytes()[128..132], [0, 1, 17, 0]);
        assert!(Mad::subn_get_directed(&[1; 63], ATTR_NODE_INFO, 0, 9).is_some());
        assert!(Mad::subn_get_directed(&[1; 64], ATTR_NODE_INFO, 0, 9).is_none());
    }

    #[test]
    fn only_the_response_to_the_same_transaction_answers() {
        let query = Mad::subn_get_directed(&[], ATTR_SM_INFO, 0, 5).unwrap();
        let mut bytes = *query.bytes();
        assert!(!Mad::from_bytes(&bytes).answers(&query), "the query itself came back");
        bytes[3] = METHOD_GET_RESP;
        bytes[4] = 0x80; // the direction bit
        bytes[8..12].copy_from_slice(&[0xaa; 4]); // the kernel's half of the identifier
        let answer = Mad::from_bytes(&bytes);
        assert!(answer.answers(&query));
        assert_eq!(answer.status(), 0);
        bytes[15] = 6;
        assert!(!Mad::from_bytes(&bytes).answers(&query));
    }

    #[test]
    fn a_short_message_reads_as_zeros() {
        assert_eq!(Mad::from_bytes(&[1, 1]).data(), [0; 64]);
    }
}
