// Written by idlc from the .idl files. Do not edit.

/// Why the sample did not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleError {
    /// The call itself failed.
    Rpc(RpcError),
    /// A part failed; which, and why.
    Part {
        /// Number of the part.
        index: u32,
        why: Text<24>,
    },
    /// It is over.
    Over(u8, bool),
    /// It is lost.
    Lost,
}

// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.
unsafe impl Exchangeable for SampleError {}

impl From<RpcError> for SampleError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl Failure for SampleError {
    fn gone() -> Self {
        Self::Lost
    }
    fn is_gone(&self) -> bool {
        matches!(self, Self::Rpc(RpcError::DomainCrashed) | Self::Lost)
    }
}

/// Plain data with every kind of plain field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// When, in nanoseconds.
    pub at: u64,
    /// Six bytes.
    pub address: [u8; 6],
    /// A pair, if there is one.
    pub pair: Option<(i16, char)>,
    /// The state after it.
    pub state: State,
}

// SAFETY: all its fields are plain data (checked by idlc), so it has no pointer and owns nothing.
unsafe impl Plain for Measure {}
// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.
unsafe impl Exchangeable for Measure {}

/// A plain enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing happens.
    Idle,
    /// Something happens, with this number.
    Busy(u32),
}

// SAFETY: all its fields are plain data (checked by idlc), so it has no pointer and owns nothing.
unsafe impl Plain for State {}
// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.
unsafe impl Exchangeable for State {}

abi::numbered! {
    /// A plain enum whose values have numbers.
    pub enum Phase {
        /// Not yet.
        Before = 0,
        /// Not any more.
        After = 1,
    }
}

// SAFETY: all its fields are plain data (checked by idlc), so it has no pointer and owns nothing.
unsafe impl Plain for Phase {}
// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.
unsafe impl Exchangeable for Phase {}

/// A value with floats, which crosses only on the shared heap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Left.
    pub left: f32,
    /// Right.
    pub right: f64,
}

// SAFETY: all its fields are plain data (checked by idlc), so it has no pointer and owns nothing.
unsafe impl Plain for Sample {}
// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.
unsafe impl Exchangeable for Sample {}

/// A struct that owns things.
#[derive(Debug)]
pub struct Parcel {
    /// A name, which is plain.
    pub name: Text<32>,
    /// Bytes.
    pub bytes: RVec<u8>,
    /// Handles, some perhaps missing.
    pub handles: [Option<Handle<dyn Part>>; 2],
    /// One thing or another.
    pub content: Content,
}

// SAFETY: transfers every field that can own something; the others are plain data (checked by idlc).
unsafe impl Exchangeable for Parcel {
    const HANDLES: bool = false
        || <Content as Exchangeable>::HANDLES
        || <RVec<u8> as Exchangeable>::HANDLES
        || <[Option<Handle<dyn Part>>; 2] as Exchangeable>::HANDLES
    ;
    const DEPTH: usize = abi::bounds::deeper(&[
        <Content as Exchangeable>::DEPTH,
        <RVec<u8> as Exchangeable>::DEPTH,
        <[Option<Handle<dyn Part>>; 2] as Exchangeable>::DEPTH,
    ]);

    #[inline]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.
        unsafe { self.bytes.transfer(transfer)? };
        // SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.
        unsafe { self.handles.transfer(transfer)? };
        // SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.
        unsafe { self.content.transfer(transfer)? };
        Ok(())
    }
}

/// An enum that owns things in some of its variants.
#[derive(Debug)]
pub enum Content {
    /// Nothing.
    Empty,
    /// Plain data only.
    Plain(u64),
    /// A measure on the shared heap, and a number.
    Measured(RRef<Measure>, u32),
    /// Any handle.
    Linked {
        /// Its name.
        name: Text<8>,
        link: AnyHandle,
    },
}

// SAFETY: transfers every field that can own something; the others are plain data (checked by idlc).
unsafe impl Exchangeable for Content {
    const HANDLES: bool = false
        || <AnyHandle as Exchangeable>::HANDLES
        || <RRef<Measure> as Exchangeable>::HANDLES
    ;
    const DEPTH: usize = abi::bounds::deeper(&[
        <AnyHandle as Exchangeable>::DEPTH,
        <RRef<Measure> as Exchangeable>::DEPTH,
    ]);

    #[inline]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        match self {
            Self::Empty { .. } => {}
            Self::Plain { .. } => {}
            Self::Measured { 0: field_0, .. } => {
                // SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.
                unsafe { field_0.transfer(transfer)? };
            }
            Self::Linked { link: field_link, .. } => {
                // SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.
                unsafe { field_link.transfer(transfer)? };
            }
        }
        Ok(())
    }
}

/// A part of the whole.
pub trait Part: Send + Sync + 'static {
    /// Its number.
    fn number(&self) -> RpcResult<u32>;
    /// Takes another part; the sum of the numbers.
    fn join(&self, other: Handle<dyn Part>) -> RpcResult<u32>;
}

// SAFETY: the number is derived from the name, which no other interface has (checked by idlc).
unsafe impl Interface for dyn Part {
    const NUMBER: u64 = 0x06c03537748bdea6;
    const NAME: &'static str = "Part";
}

// SAFETY: the pointer is only unsized.
unsafe impl<T: Part> ObjectOf<T> for dyn Part {
    #[inline(always)]
    fn object(pointer: *mut T) -> *mut Self {
        pointer
    }
}

/// [`Part`] for objects that pass on every call which they do not write themselves.
pub trait PartBase: Send + Sync + 'static {
    /// Makes `call` on the object behind, or answers with an error in its place. May make it again; what it
    /// moved is gone then, and it fails like one that crashed.
    ///
    /// # Errors
    /// Those of the call.
    fn pass<T>(&self, call: impl FnMut(&dyn Part) -> Result<T, RpcError>) -> Result<T, RpcError>;
    /// Its number.
    fn number(&self) -> RpcResult<u32> {
        self.pass(|it| it.number())
    }
    /// Takes another part; the sum of the numbers.
    fn join(&self, other: Handle<dyn Part>) -> RpcResult<u32> {
        let mut moved = Some((other,));
        self.pass(|it| match moved.take() {
            Some((other,)) => it.join(other),
            None => Err(RpcError::DomainCrashed.into()),
        })
    }
}

impl<T: PartBase> Part for T {
    #[inline]
    fn number(&self) -> RpcResult<u32> {
        PartBase::number(self)
    }
    #[inline]
    fn join(&self, other: Handle<dyn Part>) -> RpcResult<u32> {
        PartBase::join(self, other)
    }
}

/// The whole.
pub trait Whole: Send + Sync + 'static {
    /// Takes nothing, gives nothing.
    fn nothing(&self) -> RpcResult<()>;
    /// Takes plain data.
    fn plain(&self, measure: Measure, state: State, flag: bool) -> Result<State, SampleError>;
    /// Lends memory of a program.
    fn fill(&self, to: &UserBuf<'_>, byte: u8) -> Result<u64, SampleError>;
    /// Lends, moves and gives back.
    ///
    /// Time budget: 1,500 ms.
    fn work(
        &self,
        lent: &RRef<Sample>,
        bytes: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError>;
    /// Handles by value, alone and inside others. Its line is too long for one line.
    ///
    /// May block without a limit.
    ///
    /// Let into a domain that is short of memory.
    fn link(
        &self,
        part: Handle<dyn Part>,
        more: Option<Handle<dyn Part>>,
        parcel: Parcel,
        number: u128,
    ) -> Result<Handle<dyn Whole>, SampleError>;
}

// SAFETY: the number is derived from the name, which no other interface has (checked by idlc).
unsafe impl Interface for dyn Whole {
    const NUMBER: u64 = 0x5774a41b761c175b;
    const NAME: &'static str = "Whole";
}

// SAFETY: the pointer is only unsized.
unsafe impl<T: Whole> ObjectOf<T> for dyn Whole {
    #[inline(always)]
    fn object(pointer: *mut T) -> *mut Self {
        pointer
    }
}

/// [`Whole`] for objects that pass on every call which they do not write themselves.
pub trait WholeBase: Send + Sync + 'static {
    /// Makes `call` on the object behind, or answers with an error in its place. May make it again; what it
    /// moved is gone then, and it fails like one that crashed.
    ///
    /// # Errors
    /// Those of the call.
    fn pass<T, E: Failure>(&self, call: impl FnMut(&dyn Whole) -> Result<T, E>) -> Result<T, E>;
    /// Takes nothing, gives nothing.
    fn nothing(&self) -> RpcResult<()> {
        self.pass(|it| it.nothing())
    }
    /// Takes plain data.
    fn plain(&self, measure: Measure, state: State, flag: bool) -> Result<State, SampleError> {
        self.pass(|it| it.plain(measure, state, flag))
    }
    /// Lends memory of a program.
    fn fill(&self, to: &UserBuf<'_>, byte: u8) -> Result<u64, SampleError> {
        self.pass(|it| it.fill(to, byte))
    }
    /// Lends, moves and gives back.
    fn work(
        &self,
        lent: &RRef<Sample>,
        bytes: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError> {
        let mut moved = Some((buffer,));
        self.pass(|it| match moved.take() {
            Some((buffer,)) => it.work(lent, bytes, buffer),
            None => Err(RpcError::DomainCrashed.into()),
        })
    }
    /// Handles by value, alone and inside others. Its line is too long for one line.
    fn link(
        &self,
        part: Handle<dyn Part>,
        more: Option<Handle<dyn Part>>,
        parcel: Parcel,
        number: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        let mut moved = Some((part, more, parcel,));
        self.pass(|it| match moved.take() {
            Some((part, more, parcel,)) => it.link(part, more, parcel, number),
            None => Err(RpcError::DomainCrashed.into()),
        })
    }
}

impl<T: WholeBase> Whole for T {
    #[inline]
    fn nothing(&self) -> RpcResult<()> {
        WholeBase::nothing(self)
    }
    #[inline]
    fn plain(&self, measure: Measure, state: State, flag: bool) -> Result<State, SampleError> {
        WholeBase::plain(self, measure, state, flag)
    }
    #[inline]
    fn fill(&self, to: &UserBuf<'_>, byte: u8) -> Result<u64, SampleError> {
        WholeBase::fill(self, to, byte)
    }
    #[inline]
    fn work(
        &self,
        lent: &RRef<Sample>,
        bytes: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError> {
        WholeBase::work(self, lent, bytes, buffer)
    }
    #[inline]
    fn link(
        &self,
        part: Handle<dyn Part>,
        more: Option<Handle<dyn Part>>,
        parcel: Parcel,
        number: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        WholeBase::link(self, part, more, parcel, number)
    }
}

/// Every interface: its number, its name, and the names of its methods in the order of their numbers.
pub const INTERFACES: &[(u64, &str, &[&str])] = &[
    (0x06c03537748bdea6, "Part", &[
        "number",
        "join",
    ]),
    (0x5774a41b761c175b, "Whole", &[
        "nothing",
        "plain",
        "fill",
        "work",
        "link",
    ]),
];

/// The variants of the enums that a trace shows.
#[allow(dead_code, non_upper_case_globals)]
mod variants {
    pub const Phase: &[&str] = &["Before", "After"];
}

/// What a trace shows of arguments, for each method of [`INTERFACES`]: the name of each, in one word what is noted of it
/// (`number`, `signed`, `truth`, `length`, `variant`; `nothing`), and of a variant the names. Lengths are noted behind all others.
pub const ARGUMENTS: &[&[&[(&str, &str, &[&str])]]] = &[
    &[
        &[],
        &[("other", "nothing", &[])],
    ],
    &[
        &[],
        &[("measure", "nothing", &[]), ("state", "nothing", &[]), ("flag", "truth", &[])],
        &[("to", "nothing", &[]), ("byte", "number", &[])],
        &[("lent", "nothing", &[]), ("bytes", "length", &[]), ("buffer", "length", &[])],
        &[("part", "nothing", &[]), ("more", "nothing", &[]), ("parcel", "nothing", &[]), ("number", "nothing", &[])],
    ],
];

/// The entries of domains, one module each.
pub mod domains {
    /// A domain that wants and offers nothing.
    pub mod quiet {
        use crate::*;

        /// What the domain wants, in the order of its parameters, and then what it offers.
        pub const PORTS: &[abi::image::Port<'static>] = &[];

        /// The domain's function that `dispatch` calls.
        pub type Start = fn() -> RpcResult<()>;

        /// Gives the grants to `start`, each with its type, and puts what it offers into `offers`.
        ///
        /// # Errors
        /// [`EntryError::Grants`] if a grant is missing or of another interface, or there is no room for the
        /// offers; otherwise what `start` gives.
        pub fn dispatch(
            _grants: &mut [Option<AnyHandle>],
            _options: Option<RVec<u8>>,
            _offers: &mut [Option<AnyHandle>],
            start: Start,
        ) -> Result<(), EntryError> {
            start().map_err(EntryError::Failed)?;
            Ok(())
        }
    }

    /// A domain with every kind of port.
    pub mod busy_pci2 {
        use crate::*;

        /// What the domain wants, in the order of its parameters, and then what it offers.
        pub const PORTS: &[abi::image::Port<'static>] = &[
            entry::port::<dyn Part>("part", 0),
            entry::port::<dyn Part>("spare", abi::image::PORT_OPTIONAL),
            entry::port::<dyn Whole>("whole", abi::image::PORT_OFFER),
            entry::port::<dyn Part>("spare", abi::image::PORT_OFFER | abi::image::PORT_OPTIONAL),
        ];

        /// The domain's function that `dispatch` calls.
        ///
        /// `part`: What it is made of.
        pub type Start = fn(
            Handle<dyn Part>,
            Option<Handle<dyn Part>>,
            RVec<u8>,
        ) -> RpcResult<(Handle<dyn Whole>, Option<Handle<dyn Part>>)>;

        /// Gives the grants to `start`, each with its type, and puts what it offers into `offers`.
        ///
        /// # Errors
        /// [`EntryError::Grants`] if a grant is missing or of another interface, or there is no room for the
        /// offers; otherwise what `start` gives.
        pub fn dispatch(
            grants: &mut [Option<AnyHandle>],
            options: Option<RVec<u8>>,
            offers: &mut [Option<AnyHandle>],
            start: Start,
        ) -> Result<(), EntryError> {
            let [offer0, offer1, ..] = offers else { return Err(EntryError::Grants) };
            let grant0 = entry::required::<dyn Part>(grants, 0)?;
            let grant1 = entry::optional::<dyn Part>(grants, 1)?;
            let grant2 = entry::options(options)?;
            let (value0, value1) = start(grant0, grant1, grant2).map_err(EntryError::Failed)?;
            *offer0 = Some(value0.into_any());
            *offer1 = value1.map(Handle::into_any);
            Ok(())
        }
    }

    /// A domain that offers several of the same.
    pub mod many {
        use crate::*;

        /// What the domain wants, in the order of its parameters, and then what it offers.
        pub const PORTS: &[abi::image::Port<'static>] = &[
            entry::port::<dyn Whole>("whole", 0),
            entry::port::<dyn Part>("service0", abi::image::PORT_OFFER),
            entry::port::<dyn Part>("service1", abi::image::PORT_OFFER),
        ];

        /// The domain's function that `dispatch` calls.
        pub type Start = fn(Handle<dyn Whole>) -> RpcResult<[Handle<dyn Part>; 2]>;

        /// Gives the grants to `start`, each with its type, and puts what it offers into `offers`.
        ///
        /// # Errors
        /// [`EntryError::Grants`] if a grant is missing or of another interface, or there is no room for the
        /// offers; otherwise what `start` gives.
        pub fn dispatch(
            grants: &mut [Option<AnyHandle>],
            _options: Option<RVec<u8>>,
            offers: &mut [Option<AnyHandle>],
            start: Start,
        ) -> Result<(), EntryError> {
            let [offer0, offer1, ..] = offers else { return Err(EntryError::Grants) };
            let grant0 = entry::required::<dyn Whole>(grants, 0)?;
            let [value0, value1] = start(grant0).map_err(EntryError::Failed)?;
            *offer0 = Some(value0.into_any());
            *offer1 = Some(value1.into_any());
            Ok(())
        }
    }
}
