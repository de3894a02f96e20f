//! The controller's registers (section 3.1): what it can do, how it is reset and started, and where
//! its doorbells are.

/// The registers of memory region 0. Offsets count from its start.
pub trait Registers {
    /// Reads 32 bits.
    fn read32(&self, offset: usize) -> u32;
    /// Writes 32 bits.
    fn write32(&self, offset: usize, value: u32);
}

/// Offsets of the registers.
mod at {
    pub const CAPABILITIES: usize = 0x00;
    pub const VERSION: usize = 0x08;
    pub const CONFIGURATION: usize = 0x14;
    pub const STATUS: usize = 0x1c;
    pub const ADMIN_SIZES: usize = 0x24;
    pub const ADMIN_SUBMISSION: usize = 0x28;
    pub const ADMIN_COMPLETION: usize = 0x30;
    pub const DOORBELLS: usize = 0x1000;
}

/// Bytes of registers that there must be at least: those above, and the doorbells of two pairs.
pub const LEAST_BYTES: usize = at::DOORBELLS + 4 * 4;

/// CC.EN.
const ENABLE: u32 = 1;
/// CC.IOSQES and CC.IOCQES: entries of 64 and of 16 bytes, as powers of two. All else is 0: the NVM
/// command set, pages of 4 KiB, round robin, no shutdown.
const ENTRIES: u32 = 6 << 16 | 4 << 20;
/// CSTS.RDY.
const READY: u32 = 1;
/// CSTS.CFS.
const FATAL: u32 = 2;
/// CAP.TO is in such units, in milliseconds.
const TIMEOUT_UNIT: u64 = 500;

/// Why a controller did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// Its registers read as ones: it is not there.
    Absent,
    /// It does not take pages of 4 KiB.
    PageSize,
    /// It does not know the NVM command set.
    NoNvm,
    /// Its queues have less than two entries.
    SmallQueues,
    /// Its doorbells lie outside of its registers.
    Doorbells,
    /// It did not finish its reset in the time that it asks for.
    NoReset,
    /// It did not become ready in that time.
    NotReady,
    /// It says that it is in a fatal state.
    Fatal,
}

impl core::fmt::Display for SetupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SetupError::Absent => "its registers are not there",
            SetupError::PageSize => "it does not take pages of 4 KiB",
            SetupError::NoNvm => "it does not know the NVM command set",
            SetupError::SmallQueues => "its queues are too small",
            SetupError::Doorbells => "its doorbells lie outside of its registers",
            SetupError::NoReset => "it does not finish its reset",
            SetupError::NotReady => "it does not become ready",
            SetupError::Fatal => "it is in a fatal state",
        })
    }
}

/// What the controller says of itself in CAP (3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The most entries of a queue of its own, 2 to 65,536.
    pub entries: u32,
    /// How long a reset or a start may take, in milliseconds; at least one unit.
    pub timeout: u64,
    /// Bytes from one doorbell to the next.
    stride: usize,
    /// Bytes of registers that there are.
    bytes: usize,
}

impl Capabilities {
    /// Reads them, and checks what is needed. There are `bytes` bytes of registers.
    ///
    /// # Errors
    /// The controller cannot be used; why.
    pub fn read(registers: &impl Registers, bytes: usize) -> Result<Self, SetupError> {
        if bytes < LEAST_BYTES {
            return Err(SetupError::Doorbells);
        }
        let low = registers.read32(at::CAPABILITIES);
        let high = registers.read32(at::CAPABILITIES + 4);
        if low == u32::MAX && high == u32::MAX {
            return Err(SetupError::Absent);
        }
        // CAP.MPSMIN counts from 4 KiB on.
        if high >> 16 & 0xf != 0 {
            return Err(SetupError::PageSize);
        }
        // CAP.CSS, of which bit 0 is the NVM command set.
        if high >> 5 & 1 == 0 {
            return Err(SetupError::NoNvm);
        }
        let entries = (low & 0xffff) + 1;
        if entries < 2 {
            return Err(SetupError::SmallQueues);
        }
        let capabilities = Capabilities {
            entries,
            timeout: u64::from(low >> 24).max(1) * TIMEOUT_UNIT,
            stride: 4 << (high & 0xf),
            bytes,
        };
        match capabilities.pairs() {
            0 | 1 => Err(SetupError::Doorbells),
            _ => Ok(capabilities),
        }
    }

    /// How many pairs have their doorbells within the registers, the admin pair included.
    pub fn pairs(&self) -> usize {
        self.bytes.saturating_sub(at::DOORBELLS) / (2 * self.stride)
    }

    /// Where the tail of a submission queue is told (3.1.24).
    pub fn tail_doorbell(&self, pair: u16) -> usize {
        at::DOORBELLS + 2 * usize::from(pair) * self.stride
    }

    /// Where the head of a completion queue is told (3.1.25).
    pub fn head_doorbell(&self, pair: u16) -> usize {
        self.tail_doorbell(pair) + self.stride
    }
}

/// The version that the controller follows: major, minor (3.1.2).
pub fn version(registers: &impl Registers) -> (u16, u8) {
    let version = registers.read32(at::VERSION);
    ((version >> 16) as u16, (version >> 8) as u8)
}

/// Waits until CSTS.RDY is `wanted`. `pause` waits a millisecond.
fn wait(
    registers: &impl Registers,
    wanted: u32,
    limit: u64,
    mut pause: impl FnMut(),
) -> Option<u32> {
    for _ in 0..=limit {
        let status = registers.read32(at::STATUS);
        if status == u32::MAX {
            return None;
        }
        if status & READY == wanted || status & FATAL != 0 && wanted == READY {
            return Some(status);
        }
        pause();
    }
    None
}

/// Asks for a reset (3.1.5, CC.EN).
pub fn begin_reset(registers: &impl Registers) {
    registers.write32(at::CONFIGURATION, 0);
}

/// Waits for the end of a reset: then the controller uses no memory any more and has forgotten its
/// queues. `pause` waits a millisecond; it is called as often as CAP.TO allows.
///
/// # Errors
/// [`SetupError::NoReset`].
pub fn end_reset(
    registers: &impl Registers,
    capabilities: &Capabilities,
    pause: impl FnMut(),
) -> Result<(), SetupError> {
    let ended = wait(registers, 0, capabilities.timeout, pause);
    ended.map(drop).ok_or(SetupError::NoReset)
}

/// [`begin_reset`] and [`end_reset`].
///
/// # Errors
/// [`SetupError::NoReset`].
pub fn reset(
    registers: &impl Registers,
    capabilities: &Capabilities,
    pause: impl FnMut(),
) -> Result<(), SetupError> {
    begin_reset(registers);
    end_reset(registers, capabilities, pause)
}

/// Where the admin queues are, and how many entries each has.
#[derive(Clone, Copy, Debug)]
pub struct AdminQueues {
    /// The submission queue, at a page.
    pub submission: u64,
    /// The completion queue, at a page.
    pub completion: u64,
    /// Entries of each, 2 to 4,096.
    pub entries: u16,
}

/// Starts a controller that was reset (7.6.1).
///
/// # Errors
/// [`SetupError::NotReady`], [`SetupError::Fatal`].
pub fn start(
    registers: &impl Registers,
    capabilities: &Capabilities,
    queues: &AdminQueues,
    pause: impl FnMut(),
) -> Result<(), SetupError> {
    let last = u32::from(queues.entries - 1);
    registers.write32(at::ADMIN_SIZES, last << 16 | last);
    for (offset, address) in [
        (at::ADMIN_SUBMISSION, queues.submission),
        (at::ADMIN_COMPLETION, queues.completion),
    ] {
        registers.write32(offset, address as u32);
        registers.write32(offset + 4, (address >> 32) as u32);
    }
    registers.write32(at::CONFIGURATION, ENTRIES | ENABLE);
    match wait(registers, READY, capabilities.timeout, pause) {
        None => Err(SetupError::NotReady),
        Some(status) if status & FATAL != 0 => Err(SetupError::Fatal),
        Some(_) => Ok(()),
    }
}

/// Whether the controller is at work: ready, not in a fatal state, and there.
pub fn is_healthy(registers: &impl Registers) -> bool {
    registers.read32(at::STATUS) & (READY | FATAL) == READY
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// A controller that becomes ready after so many looks.
    struct Slow {
        capabilities: u64,
        status: Cell<u32>,
        looks: Cell<u64>,
        delay: u64,
        written: RefCell<alloc::vec::Vec<(usize, u32)>>,
    }

    fn slow(capabilities: u64, delay: u64) -> Slow {
        Slow {
            capabilities,
            status: Cell::new(0),
            looks: Cell::new(0),
            delay,
            written: RefCell::default(),
        }
    }

    impl Registers for Slow {
        fn read32(&self, offset: usize) -> u32 {
            match offset {
                0 => self.capabilities as u32,
                4 => (self.capabilities >> 32) as u32,
                0x1c => {
                    self.looks.set(self.looks.get() + 1);
                    let enabled = self.written.borrow().last().is_some_and(|it| it.1 & 1 == 1);
                    let late = self.looks.get() > self.delay;
                    self.status.get() | u32::from(enabled == late)
                }
                _ => 0,
            }
        }
        fn write32(&self, offset: usize, value: u32) {
            self.looks.set(0);
            self.written.borrow_mut().push((offset, value));
        }
    }

    /// 64 entries, a second, the NVM command set, doorbells of 8 bytes.
    const USUAL: u64 = 63 | 2 << 24 | 1 << 32 | 1 << 37;

    #[test]
    fn capabilities_are_read() {
        let read = Capabilities::read(&slow(USUAL, 0), 0x2000).expect("good");
        assert_eq!((read.entries, read.timeout, read.stride), (64, 1000, 8));
        assert_eq!(read.tail_doorbell(1), 0x1010);
        assert_eq!(read.head_doorbell(1), 0x1018);
        assert_eq!(read.pairs(), 256);
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let read = |value, bytes| Capabilities::read(&slow(value, 0), bytes).map(|_| ());
        assert_eq!(read(u64::MAX, 0x2000), Err(SetupError::Absent));
        assert_eq!(read(USUAL | 1 << 48, 0x2000), Err(SetupError::PageSize));
        assert_eq!(read(USUAL & !(1 << 37), 0x2000), Err(SetupError::NoNvm));
        assert_eq!(read(USUAL & !0xffff, 0x2000), Err(SetupError::SmallQueues));
        assert_eq!(read(USUAL, 0x1000), Err(SetupError::Doorbells));
        // Doorbells that are 128 KiB from each other.
        assert_eq!(read(USUAL | 15 << 32, 0x2000), Err(SetupError::Doorbells));
    }

    #[test]
    fn reset_and_start_wait_as_long_as_the_controller_asks_for() {
        let queues = AdminQueues {
            submission: 0x1_2345_6000,
            completion: 0x7000,
            entries: 16,
        };
        for (delay, good) in [(0, true), (900, true), (1100, false)] {
            let controller = slow(USUAL, delay);
            let read = Capabilities::read(&controller, 0x2000).expect("good");
            let done = reset(&controller, &read, || ());
            assert_eq!(done, good.then_some(()).ok_or(SetupError::NoReset));
            let done = start(&controller, &read, &queues, || ());
            assert_eq!(done, good.then_some(()).ok_or(SetupError::NotReady));
            let written = controller.written.borrow();
            assert!(written.contains(&(0x28, 0x2345_6000)) && written.contains(&(0x2c, 1)));
            assert!(written.contains(&(0x24, 15 << 16 | 15)));
            assert_eq!(written.last(), Some(&(0x14, 0x46_0001)));
        }
    }

    #[test]
    fn a_fatal_state_ends_the_wait() {
        let controller = slow(USUAL, 5000);
        controller.status.set(FATAL);
        let read = Capabilities::read(&controller, 0x2000).expect("good");
        let queues = AdminQueues {
            submission: 0,
            completion: 0,
            entries: 2,
        };
        let started = start(&controller, &read, &queues, || ());
        assert_eq!(started, Err(SetupError::Fatal));
        assert!(!is_healthy(&controller));
    }

    #[test]
    fn a_controller_that_goes_away_is_not_waited_for() {
        let controller = slow(USUAL, 0);
        let read = Capabilities::read(&controller, 0x2000).expect("good");
        controller.status.set(u32::MAX);
        let mut pauses = 0;
        let done = reset(&controller, &read, || pauses += 1);
        assert_eq!((done, pauses), (Err(SetupError::NoReset), 0));
        assert!(!is_healthy(&controller));
    }
}
